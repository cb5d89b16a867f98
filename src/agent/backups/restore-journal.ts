// The swap of a restore, written down before it begins. Everything before the journal is committed touches only staging;
// everything after it can be repeated, and is repeated at the next start if a crash came in between. So after a crash at
// any instant the tree is the old one or becomes the new one.
import { createHash, type Hash } from 'node:crypto'
import { closeSync, constants, linkSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { isFailure } from '../../contract/errors.ts'
import { hasCode } from '../../kit/errno.ts'
import {
  addressOf,
  createFileAt,
  type Directory,
  fsyncDirectory,
  fsyncFile,
  mkdirAt,
  type OpenFile,
  renameAt,
  statsIfThere,
  unlinkAt,
} from '../files/directory.ts'
import type { Sandbox } from '../files/sandbox.ts'
import { createTurns } from '../files/walk.ts'
import { digest, ID_BYTES } from './format.ts'
import { type Attributes, setAttributes } from './restore-attributes.ts'
import { openParents } from './restore-parents.ts'

const JOURNAL = 'journal'
const BUFFERED_BYTES = 256 * 1024
const NEWLINE = 0x0a
/** In this order. Taking away comes first, so that every name is free when it is needed; times come last. */
const SECTIONS = ['displace', 'mkdir', 'place', 'link', 'meta'] as const
type Section = (typeof SECTIONS)[number]
/** Above this, one sync of the file system is cheaper than one for every path. */
export const SYNCED_ONE_BY_ONE = 128
/** What a trash batch can number. */
export const BATCH_ITEMS = 0x10000

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
  const sections = {} as Record<Section, { file: OpenFile; hash: Hash; text: string }>
  for (const section of SECTIONS)
    sections[section] = { file: createFileAt(staging, section, 0o600), hash: createSectionHash(), text: '' }

  function flush(section: Section): void {
    const to = sections[section]
    const bytes = Buffer.from(to.text)
    to.text = ''
    to.hash.update(bytes)
    for (let done = 0; done < bytes.length; ) done += writeSync(to.file.fd, bytes, done)
  }

  return {
    add(section, operation) {
      sections[section].text += `${JSON.stringify(operation)}\n`
      if (sections[section].text.length >= BUFFERED_BYTES) flush(section)
    },
    async commit(trashBatches) {
      const digests = {} as Commitment['digests']
      for (const section of SECTIONS) {
        flush(section)
        await fsyncFile(sections[section].file)
        digests[section] = digestOf(sections[section].hash)
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
      for (const section of SECTIONS) sections[section].file[Symbol.dispose]()
    },
  }
}

const createSectionHash = () => createHash('blake2b512')
const digestOf = (hash: Hash) => hash.digest().subarray(0, ID_BYTES).toString('hex')

/** A section has a line for every file, so it is not read whole. */
function* piecesOf(staging: Directory, section: Section): Generator<Buffer> {
  const piece = Buffer.allocUnsafeSlow(BUFFERED_BYTES)
  const fd = openSync(addressOf(staging, section), constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    for (let length = readSync(fd, piece); length > 0; length = readSync(fd, piece)) yield piece.subarray(0, length)
  } finally {
    closeSync(fd)
  }
}

/** Many lines at a time, none of them cut. */
function* linesOf(staging: Directory, section: Section): Generator<string[]> {
  let rest = Buffer.alloc(0)
  for (const piece of piecesOf(staging, section)) {
    const end = piece.lastIndexOf(NEWLINE) + 1
    if (end > 0)
      yield Buffer.concat([rest, piece.subarray(0, end - 1)])
        .toString()
        .split('\n')
    rest = Buffer.concat([end > 0 ? Buffer.alloc(0) : rest, piece.subarray(end)])
  }
}

function digestOfSection(staging: Directory, section: Section): string {
  const hash = createSectionHash()
  for (const piece of piecesOf(staging, section)) hash.update(piece)
  return digestOf(hash)
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
    if (digestOfSection(staging, section) !== commitment.digests[section])
      throw new Error(`the ${section} part of a restore journal is damaged`)
  }
  return commitment
}

/** The new tree is whole and durable: whatever else is in staging is rubbish from now on. */
export async function closeCommitment(staging: Directory): Promise<void> {
  unlinkAt(staging, JOURNAL)
  await fsyncDirectory(staging)
}

/** Somebody has taken it away since, or put something else where a directory above it was. */
export function isGone(error: unknown): boolean {
  return isFailure(error, 'not_found') || isFailure(error, 'invalid_path') || hasCode(error, 'ENOENT', 'ENOTDIR')
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
  const touch = (path: string[]) => touched.set(path.join('/'), path)
  using parents = openParents(sandbox)
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
      try {
        parents.within(path, (parent, name) => mkdirAt(parent, name, 0o700))
      } catch (error) {
        if (!hasCode(error, 'EEXIST')) throw error
      }
    },
    place({ path, staged }) {
      // What is not in staging any more is in its place, whatever has become of that since.
      const isDone = () => statsIfThere(staging, String(staged)) === undefined
      try {
        parents.within(path, (parent, name) => renameAt(staging, String(staged), parent, name), isDone)
      } catch (error) {
        if (!isDone()) throw error
      }
    },
    link({ path, to }) {
      try {
        using target = sandbox.openPlace(to)
        const isDone = () => statsIfThere(target.parent, target.name) === undefined
        const from = addressOf(target.parent, target.name)
        parents.within(path, (parent, name) => linkSync(from, addressOf(parent, name)), isDone)
      } catch (error) {
        if (!hasCode(error, 'EEXIST') && !isGone(error)) throw error
      }
    },
    meta({ path, ...attributes }) {
      if (path.length === 0) {
        using top = sandbox.openDirectory([])
        setAttributes(`${top.address}/.`, attributes)
        return
      }
      try {
        using place = sandbox.openPlace(path)
        setAttributes(addressOf(place.parent, place.name), attributes)
      } catch (error) {
        if (!isGone(error)) throw error
      }
    },
  }
  for (const section of SECTIONS) {
    for (const lines of linesOf(staging, section)) {
      for (const line of lines) {
        const operation = JSON.parse(line)
        ;(apply[section] as (operation: unknown) => void)(operation)
        if (touched.size <= SYNCED_ONE_BY_ONE) touch(section === 'meta' ? operation.path : operation.path.slice(0, -1))
        if (turn.due()) {
          parents.letGo()
          await turn.take()
        }
      }
    }
  }
  if (touched.size > SYNCED_ONE_BY_ONE) return undefined
  for (const batch of commitment.trashBatches) {
    using folder = openTrash(batch)
    await fsyncDirectory(folder)
  }
  return [...touched.values()]
}
