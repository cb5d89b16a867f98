// The swap of a restore, written down before it begins. Everything before the journal is committed touches only staging;
// everything after it can be repeated, and is repeated at the next start if a crash came in between. So after a crash at
// any instant the tree is the old one or becomes the new one.
import { createHash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  createReadStream,
  fstatSync,
  lchownSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  utimesSync,
  writeSync,
} from 'node:fs'
import { createInterface } from 'node:readline'
import { hasCode } from '../../kit/errno.ts'
import {
  addressOf,
  createFileAt,
  type Directory,
  fsyncDirectory,
  fsyncFile,
  hasDescriptorPaths,
  type OpenFile,
  renameAt,
  statsIfThere,
  unlinkAt,
} from '../files/directory.ts'
import type { Sandbox } from '../files/sandbox.ts'
import { createTurns } from '../files/walk.ts'
import type { Entry } from './entries.ts'
import { digest, ID_BYTES } from './format.ts'

const JOURNAL = 'journal'
const BUFFERED_BYTES = 256 * 1024
/** In this order. Taking away comes first, so that every name is free when it is needed; times come last. */
const SECTIONS = ['displace', 'mkdir', 'place', 'link', 'meta'] as const
type Section = (typeof SECTIONS)[number]
/** Above this, one sync of the file system is cheaper than one for every path. */
export const SYNCED_ONE_BY_ONE = 16
/** What a trash batch can number. */
export const BATCH_ITEMS = 0x10000

export type Attributes = Pick<Entry, 'mode' | 'uid' | 'gid'> & { mtime: string; isSymlink: boolean }

interface Operations {
  /** Moves what has the path into the trash, as item `item` of the restore's batches. */
  displace: { path: string[]; item: number }
  mkdir: { path: string[] }
  /** Moves the staged thing to the path. */
  place: { path: string[]; staged: number }
  link: { path: string[]; to: string[] }
  meta: { path: string[] } & Attributes
}

interface Commitment {
  version: 1
  trashBatches: string[]
  digests: Record<Section, string>
}

export interface JournalWriter {
  add<S extends Section>(section: S, operation: Operations[S]): void
  /** What is staged must be durable before. From the moment this resolves, the restore will happen. */
  commit(trashBatches: string[]): Promise<void>
  close(): void
}

export function createJournal(staging: Directory): JournalWriter {
  const files = {} as Record<Section, OpenFile>
  const lines: Record<Section, string[]> = { displace: [], mkdir: [], place: [], link: [], meta: [] }
  const sizes: Record<Section, number> = { displace: 0, mkdir: 0, place: 0, link: 0, meta: 0 }
  for (const section of SECTIONS) files[section] = createFileAt(staging, section, 0o600)

  function flush(section: Section): void {
    const text = lines[section].join('')
    if (text) writeSync(files[section].fd, text)
    lines[section] = []
    sizes[section] = 0
  }

  return {
    add(section, operation) {
      const line = `${JSON.stringify(operation)}\n`
      lines[section].push(line)
      sizes[section] += line.length
      if (sizes[section] >= BUFFERED_BYTES) flush(section)
    },
    async commit(trashBatches) {
      const digests = {} as Commitment['digests']
      for (const section of SECTIONS) {
        flush(section)
        await fsyncFile(files[section])
        digests[section] = digestOfFile(addressOf(staging, section))
      }
      const text = JSON.stringify({ version: 1, trashBatches, digests } satisfies Commitment)
      using file = createFileAt(staging, `${JOURNAL}.new`, 0o600)
      writeSync(file.fd, `${digest(Buffer.from(text)).toString('hex')}\n${text}`)
      await fsyncFile(file)
      await fsyncDirectory(staging)
      renameAt(staging, `${JOURNAL}.new`, staging, JOURNAL)
      await fsyncDirectory(staging)
    },
    close() {
      for (const section of SECTIONS) files[section][Symbol.dispose]()
    },
  }
}

/** A section has a line for every file, so it is not read whole. */
function digestOfFile(address: string | Buffer): string {
  const hash = createHash('blake2b512')
  const piece = Buffer.allocUnsafe(BUFFERED_BYTES)
  const fd = openSync(address, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    for (let length = readSync(fd, piece); length > 0; length = readSync(fd, piece))
      hash.update(piece.subarray(0, length))
  } finally {
    closeSync(fd)
  }
  return hash.digest().subarray(0, ID_BYTES).toString('hex')
}

/** Undefined where the restore was never committed: nothing but staging was touched. */
export function readCommitment(staging: Directory): Commitment | undefined {
  if (!statsIfThere(staging, JOURNAL)) return undefined
  const text = readFileSync(addressOf(staging, JOURNAL), 'utf8')
  const at = text.indexOf('\n')
  const body = text.slice(at + 1)
  if (digest(Buffer.from(body)).toString('hex') !== text.slice(0, at)) throw new Error('a restore journal is damaged')
  const commitment = JSON.parse(body) as Commitment
  for (const section of SECTIONS) {
    if (digestOfFile(addressOf(staging, section)) !== commitment.digests[section])
      throw new Error(`the ${section} part of a restore journal is damaged`)
  }
  return commitment
}

/** The new tree is whole and durable: whatever else is in staging is rubbish from now on. */
export async function closeCommitment(staging: Directory): Promise<void> {
  unlinkAt(staging, JOURNAL)
  await fsyncDirectory(staging)
}

/**
 * Must be idempotent, from any point at which an earlier run ended. Answers the paths that must be synced, or undefined
 * where they are so many that the whole file system should be.
 */
export async function rollForward(
  staging: Directory,
  commitment: Commitment,
  sandbox: Sandbox,
  openTrash: (batch: string) => Directory,
): Promise<string[][] | undefined> {
  const turn = createTurns()
  const touched = new Map<string, string[]>()
  const touch = (path: string[]) => touched.size <= SYNCED_ONE_BY_ONE && touched.set(path.join('/'), path)
  const apply: { [S in Section]: (operation: Operations[S]) => void } = {
    displace({ path, item }) {
      using slotFolder = openTrash(commitment.trashBatches[Math.floor(item / BATCH_ITEMS)] ?? '')
      const slot = (item % BATCH_ITEMS).toString(16).padStart(4, '0')
      if (statsIfThere(slotFolder, slot) || !sandbox.lstatIfThere(path)) return
      using place = sandbox.openPlace(path)
      renameAt(place.parent, place.name, slotFolder, slot)
    },
    // A game that takes a directory away while this runs must not keep the rest from being put in place.
    mkdir({ path }) {
      using place = sandbox.openNewPlace(path, { anyName: true })
      try {
        mkdirSync(addressOf(place.parent, place.name), { mode: 0o700 })
      } catch (error) {
        if (!hasCode(error, 'EEXIST')) throw error
      }
    },
    place({ path, staged }) {
      if (!statsIfThere(staging, String(staged))) return
      using place = sandbox.openNewPlace(path, { anyName: true })
      renameSync(addressOf(staging, String(staged)), addressOf(place.parent, place.name))
    },
    link({ path, to }) {
      using target = sandbox.openPlace(to)
      using place = sandbox.openPlace(path)
      try {
        linkSync(addressOf(target.parent, target.name), addressOf(place.parent, place.name))
      } catch (error) {
        if (!hasCode(error, 'EEXIST')) throw error
      }
    },
    meta({ path, ...attributes }) {
      if (path.length === 0) {
        using top = sandbox.openDirectory([])
        setAttributes(`${top.address}/.`, attributes)
        return
      }
      if (!sandbox.lstatIfThere(path)) return
      using place = sandbox.openPlace(path)
      setAttributes(addressOf(place.parent, place.name), attributes)
    },
  }
  for (const section of SECTIONS) {
    const input = createReadStream(addressOf(staging, section), { encoding: 'utf8' })
    for await (const line of createInterface({ input })) {
      const operation = JSON.parse(line)
      ;(apply[section] as (operation: unknown) => void)(operation)
      touch(section === 'meta' ? operation.path : operation.path.slice(0, -1))
      if (turn.due()) await turn.take()
    }
  }
  if (touched.size > SYNCED_ONE_BY_ONE) return undefined
  for (const batch of commitment.trashBatches) {
    using folder = openTrash(batch)
    await fsyncDirectory(folder)
  }
  return [...touched.values()]
}

const isRoot = process.getuid?.() === 0

/** open(2), the same on every platform that Node runs Linux on: names a thing without the right to read it. */
const O_PATH = 0o10000000

/**
 * Never follows, also where a symlink is swapped in meanwhile: the thing is opened, looked at, and then named by its
 * descriptor. A symlink's own times are set, and its mode has no meaning. What is of the other kind is left alone.
 */
export function setAttributes(address: string | Buffer, attributes: Attributes): void {
  const { mode, uid, gid, mtime, isSymlink } = attributes
  const seconds = secondsOf(BigInt(mtime))
  if (isSymlink) {
    if (!lstatSync(address).isSymbolicLink()) return
    if (isRoot) lchownSync(address, uid, gid)
    lutimesSync(address, seconds, seconds)
    return
  }
  const fd = openSync(address, O_PATH | constants.O_NOFOLLOW)
  try {
    if (fstatSync(fd).isSymbolicLink()) return
    const opened = hasDescriptorPaths ? `/proc/self/fd/${fd}` : address
    if (isRoot) chownSync(opened, uid, gid)
    chmodSync(opened, mode)
    utimesSync(opened, seconds, seconds)
  } finally {
    closeSync(fd)
  }
}

/**
 * Node takes times as seconds in a double, which today are 238 ns apart: the first that is not before the time. Late
 * rather than early, so that a time of whole milliseconds still reads as that millisecond.
 */
function secondsOf(ns: bigint): number {
  let seconds = Number(ns) / 1e9
  const step = 2 ** (Math.floor(Math.log2(Math.abs(seconds) + 1)) - 52)
  while (BigInt(Math.floor((seconds - Math.floor(seconds)) * 1e9)) + BigInt(Math.floor(seconds)) * 1_000_000_000n < ns)
    seconds += step
  return seconds
}

export function attributesOf(entry: Entry): Attributes {
  const { mode, uid, gid } = entry
  return { mode, uid, gid, mtime: String(entry.mtimeNs), isSymlink: entry.kind === 'symlink' }
}
