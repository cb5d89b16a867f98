// Cloudflare keeps single records with ids; we speak of whole sets. This is the difference, decided without I/O.
import { formatData, parseData } from './presentation.ts'
import type { Change, ZoneListing } from './provider.ts'
import { groupRecords, isRecordType, keyOf, normaliseName, type RecordData, type RecordType } from './records.ts'

export interface CloudflareRecord {
  id: string
  name: string
  type: string
  content: string
  ttl: number
  proxied?: boolean
  /** SRV: the parts of the content, which itself leaves out the priority. */
  data?: { priority?: number; weight?: number; port?: number; target?: string }
}

type NewRecord = Omit<CloudflareRecord, 'id' | 'content'> & { content?: string }

export interface CloudflareBatch {
  deletes: { id: string }[]
  puts: (NewRecord & { id: string })[]
  posts: NewRecord[]
}

const AUTOMATIC = 1
const AUTOMATIC_TTL = 300

export function readListing(records: CloudflareRecord[]): ZoneListing {
  const others = new Map<string, { name: string; type: string }>()
  for (const { name, type } of records) {
    if (!isRecordType(type)) others.set(keyOf({ name, type }), { name: normaliseName(name), type })
  }
  const known = records.flatMap((record) => {
    const { name, type } = record
    return isRecordType(type) ? [{ name, type, ttl: ttlOf(record), data: dataOf(type, record) }] : []
  })
  return { recordSets: groupRecords(known), others: [...others.values()] }
}

/** What is right already stays as it is; what is wrong is overwritten in place; then the rest is added or removed. */
export function planBatch(present: CloudflareRecord[], changes: readonly Change[]): CloudflareBatch {
  const batch: CloudflareBatch = { deletes: [], puts: [], posts: [] }
  for (const change of changes) {
    const mine = present.filter(({ name, type }) => normaliseName(name) === change.name && type === change.type)
    const wanted = new Map(change.records.map((data) => [JSON.stringify(data), data]))
    const wrong = mine.filter((record) => !isRight(record, change) || !wanted.delete(contentKey(change.type, record)))
    for (const data of wanted.values()) {
      const record = toApi(change, data)
      const reused = wrong.shift()
      if (reused) batch.puts.push({ id: reused.id, ...record })
      else batch.posts.push(record)
    }
    batch.deletes.push(...wrong.map(({ id }) => ({ id })))
  }
  return batch
}

function isRight(record: CloudflareRecord, change: Change): boolean {
  return record.ttl === change.ttl && record.proxied !== true
}

function contentKey(type: RecordType, record: CloudflareRecord): string {
  const [set] = groupRecords([{ name: record.name, type, ttl: record.ttl, data: dataOf(type, record) }])
  return JSON.stringify(set?.records[0])
}

function toApi(change: Change, data: RecordData[RecordType]): NewRecord {
  const { name, type, ttl } = change
  if (type === 'SRV') return { name, type, ttl, data: data as RecordData['SRV'] }
  const content = type === 'CNAME' ? (data as RecordData['CNAME']).target : formatData(type, data)
  return type === 'TXT' ? { name, type, ttl, content } : { name, type, ttl, content, proxied: false }
}

function ttlOf({ ttl }: CloudflareRecord): number {
  return ttl === AUTOMATIC ? AUTOMATIC_TTL : ttl
}

/** TXT made in the dashboard may come without quotes, and is then meant as it stands. */
function dataOf(type: RecordType, record: CloudflareRecord): RecordData[RecordType] {
  if (type === 'SRV') {
    const { priority = 0, weight = 0, port = 0, target = '' } = record.data ?? {}
    return { priority, weight, port, target }
  }
  if (type === 'TXT' && !record.content.startsWith('"')) return { text: record.content }
  return parseData(type, record.content)
}
