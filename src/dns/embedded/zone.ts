// A zone ready to be served. Answers are put together the first time they are asked for and kept until the zone
// changes, so that the usual query costs one look-up and one copy.
import type { RecordSet, RecordSetOf, RecordType } from '../records.ts'
import { CLASS_IN, encodeData, encodeName, QTYPE_ANY, TYPE_CODE } from '../wire.ts'
import { HEADER_BYTES } from './query.ts'

/** What follows the question. Made for one owner name: it points back into the question at fixed places. */
export interface Answer {
  rcode: number
  answers: number
  authorities: number
  additionals: number
  bytes: Buffer
  /** Up to here are answers and authorities; the rest may be left out where space is short. */
  coreBytes: number
}

export interface ServedZone {
  /** The name's wire form in lower case, one character a byte. */
  readonly key: string
  /** Null where the name does not exist. `type` is any number a client may send. */
  find(key: string, type: number): Answer | null
  /** What is answered for a name below the zone that does not exist. */
  missing(key: string): Answer
}

export const NOERROR = 0
export const NXDOMAIN = 3

const MAX_ALIASES = 8
const POINTER = 0xc000
const MAX_POINTER = 0x3fff
const TYPE_BY_CODE = new Map<number, RecordType>(
  (Object.entries(TYPE_CODE) as [RecordType, number][]).map(([type, code]) => [code, type]),
)
/** Every type that no record here can have is answered alike, so that what is kept stays bounded. */
const UNKNOWN_TYPE = 0

interface Node {
  key: string
  sets: Map<RecordType, RecordSet>
  made: Map<number, Answer>
}

export function wireKey(name: string): string {
  return encodeName(name).toString('latin1')
}

export function serveZone(zone: string, recordSets: readonly RecordSet[]): ServedZone {
  const apexKey = wireKey(zone)
  const nodes = plant(apexKey, recordSets)
  const soa = nodes.get(apexKey)?.sets.get('SOA') as RecordSetOf<'SOA'> | undefined
  if (!soa) throw new Error(`the zone ${zone} has no SOA`)
  const space: Space = { apexKey, nodes, soa }
  const missing = negative(space, apexKey, NXDOMAIN)
  return {
    key: apexKey,
    find(key, type) {
      const node = nodes.get(key)
      if (!node) return null
      const kind = type === QTYPE_ANY || TYPE_BY_CODE.has(type) ? type : UNKNOWN_TYPE
      const made = node.made.get(kind)
      if (made) return made
      const answer = compose(space, node, kind)
      node.made.set(kind, answer)
      return answer
    },
    missing: (key) => moved(missing, key.length - apexKey.length),
  }
}

interface Space {
  apexKey: string
  nodes: Map<string, Node>
  soa: RecordSetOf<'SOA'>
}

/** A name between the zone's top and a record exists too, though it holds nothing: it must not be NXDOMAIN. */
function plant(apexKey: string, recordSets: readonly RecordSet[]): Map<string, Node> {
  const nodes = new Map<string, Node>()
  for (const set of recordSets) {
    const own = wireKey(set.name)
    for (let key = own; ; key = parentOf(key)) {
      if (!nodes.has(key)) nodes.set(key, { key, sets: new Map(), made: new Map() })
      if (key === apexKey) break
    }
    nodes.get(own)?.sets.set(set.type, set)
  }
  return nodes
}

export function parentOf(key: string): string {
  return key.slice(key.charCodeAt(0) + 1)
}

function compose(space: Space, node: Node, type: number): Answer {
  const writer = createWriter(node.key)
  const chain = follow(space, node, type)
  for (const set of chain.sets) writer.put('answers', set)
  if (chain.rcode === NXDOMAIN || (chain.ended && !chain.found)) writer.put('authorities', negativeSoa(space.soa))
  else for (const set of chain.sets) addTargets(space, writer, set)
  return writer.finish(chain.rcode)
}

interface Chain {
  sets: RecordSet[]
  found: boolean
  /** Whether the chain ended inside the zone, so that it is for us to say that there is nothing. */
  ended: boolean
  rcode: number
}

/** The sets that answer: through aliases as long as they stay in the zone. */
function follow(space: Space, start: Node, type: number): Chain {
  const sets: RecordSet[] = []
  let node: Node | undefined = start
  for (let hops = 0; node && hops < MAX_ALIASES; hops++) {
    const set = pick(node, type)
    if (set) return { sets: [...sets, set], found: true, ended: true, rcode: NOERROR }
    const alias = node.sets.get('CNAME') as RecordSetOf<'CNAME'> | undefined
    const target = alias?.records[0]?.target
    if (!alias || target === undefined) return { sets, found: false, ended: true, rcode: NOERROR }
    if (sets.includes(alias)) break
    sets.push(alias)
    const key = wireKey(target)
    node = space.nodes.get(key)
    if (!node && isBelow(key, space.apexKey)) {
      return { sets, found: false, ended: true, rcode: NXDOMAIN }
    }
  }
  return { sets, found: false, ended: false, rcode: NOERROR }
}

/** ANY is answered with one of the sets, as RFC 8482 allows, so that it is of no use to amplify an attack. */
function pick(node: Node, type: number): RecordSet | undefined {
  if (type === QTYPE_ANY) return node.sets.values().next().value
  const name = TYPE_BY_CODE.get(type)
  return name && node.sets.get(name)
}

function isBelow(key: string, apexKey: string): boolean {
  for (let at = key; at.length >= apexKey.length; at = parentOf(at)) if (at === apexKey) return true
  return false
}

function addTargets(space: Space, writer: Writer, set: RecordSet): void {
  if (set.type !== 'SRV' && set.type !== 'NS') return
  for (const target of new Set(set.records.map((record) => record.target))) {
    const node = space.nodes.get(wireKey(target))
    for (const type of ['A', 'AAAA'] as const) {
      const address = node?.sets.get(type)
      if (address) writer.put('additionals', address)
    }
  }
}

function negative(space: Space, key: string, rcode: number): Answer {
  const writer = createWriter(key)
  writer.put('authorities', negativeSoa(space.soa))
  return writer.finish(rcode)
}

/** The SOA's own TTL, in a negative answer, says how long "no" may be remembered (RFC 2308). */
function negativeSoa(soa: RecordSetOf<'SOA'>): RecordSet {
  return { ...soa, ttl: Math.min(soa.ttl, soa.records[0]?.negativeTtl ?? soa.ttl) }
}

/** The negative answer made for the zone's own name fits any name below it, once its one pointer is moved. */
function moved(answer: Answer, byBytes: number): Answer {
  const bytes = Buffer.from(answer.bytes)
  bytes.writeUInt16BE(POINTER + HEADER_BYTES + byBytes, 0)
  return { ...answer, bytes }
}

type Section = 'answers' | 'authorities' | 'additionals'
type Writer = ReturnType<typeof createWriter>

/** Owner names are compressed; names in record data are not, which every reader must accept and SRV demands. */
function createWriter(questionKey: string) {
  const parts: Buffer[] = []
  const counts = { answers: 0, authorities: 0, additionals: 0 }
  let at = HEADER_BYTES + questionKey.length + 4
  let coreEnd = at
  const offsets = new Map<string, number>()
  for (
    let key = questionKey, offset = HEADER_BYTES;
    key.length > 1;
    offset += key.charCodeAt(0) + 1, key = parentOf(key)
  ) {
    offsets.set(key, offset)
  }
  const owner = (key: string): Buffer => {
    let own = key
    while (own.length > 1 && !offsets.has(own)) own = parentOf(own)
    const plain = Buffer.from(key.slice(0, key.length - own.length), 'latin1')
    if (own.length === 1) return Buffer.concat([plain, Buffer.of(0)])
    const pointer = POINTER + (offsets.get(own) ?? 0)
    return Buffer.concat([plain, Buffer.of(pointer >> 8, pointer & 0xff)])
  }
  const push = (bytes: Buffer) => {
    parts.push(bytes)
    at += bytes.length
  }
  return {
    put(section: Section, set: RecordSet) {
      const key = wireKey(set.name)
      for (const record of set.records) {
        const start = at
        push(owner(key))
        if (!offsets.has(key) && start <= MAX_POINTER) offsets.set(key, start)
        const data = encodeData(set.type, record)
        const fixed = Buffer.allocUnsafe(10)
        fixed.writeUInt16BE(TYPE_CODE[set.type], 0)
        fixed.writeUInt16BE(CLASS_IN, 2)
        fixed.writeUInt32BE(set.ttl, 4)
        fixed.writeUInt16BE(data.length, 8)
        push(fixed)
        push(data)
        counts[section]++
      }
      if (section !== 'additionals') coreEnd = at
    },
    finish(rcode: number): Answer {
      const start = HEADER_BYTES + questionKey.length + 4
      return { rcode, ...counts, bytes: Buffer.concat(parts), coreBytes: coreEnd - start }
    },
  }
}
