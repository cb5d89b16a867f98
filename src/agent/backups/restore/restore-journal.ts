// The swap of a restore, written down before it begins. Everything before the journal is committed touches only staging;
// everything after it can be repeated, forward or back, from any point at which an earlier run ended.
import { createHash, type Hash } from 'node:crypto'
import { constants, readFileSync, readSync } from 'node:fs'
import { isFailure } from '../../../contract/errors.ts'
import { openDescriptor } from '../../../kit/files/descriptor.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import { writeFully } from '../../../kit/files/write-fully.ts'
import {
  addressOf,
  createFileAt,
  type Directory,
  fsyncDirectory,
  fsyncFile,
  type OpenFile,
  renameAt,
  statsIfThere,
  unlinkAt,
} from '../../files/sandbox/directory.ts'
import {
  type FIRST_FORMAT,
  formatHead,
  PHASES,
  parseHead,
  type RestoreHead,
  type RestorePhase,
} from '../../restore-state.ts'
import { ID_BYTES } from '../format/format.ts'
import type { Attributes } from './restore-attributes.ts'

const BUFFERED_BYTES = 256 * 1024
const NEWLINE = 0x0a
/** In this order. Taking away comes first, so that every name is free when it is needed; times come last. */
export const SECTIONS = ['displace', 'mkdir', 'place', 'inside', 'link', 'meta'] as const
export type Section = (typeof SECTIONS)[number]
/** What staged files were when they were made, by their numbers: the last list. */
const MADE = 'made'
/** Of the digest of that list, since there are folders: a version that knows of none takes the journal for damaged, and stops. */
const MADE_DIGEST = 'made-3'
const TAKEN_BACK = 'taken-back'
const COMMITTED: RestorePhase = 'forward'
/** What a trash batch can number. */
export const BATCH_ITEMS = 0x10000

export interface Operations {
  /**
   * Moves the thing that the plan has seen at the path, told by its inode, into the trash, as item `item` of the restore's
   * batches. Whatever else is there by then is newer: a step that needs the place moves it. The first version of the
   * format has no inode: there it is whatever is there before the batch holds something for it.
   */
  displace: { path: string[]; item: number; inode?: string }
  /** Moves the staged folder to the path, with what was staged in it. Earlier versions of the format stage no folders. */
  mkdir: { path: string[]; folder?: number }
  /** Moves the staged thing to the path. */
  place: { path: string[]; staged: number }
  /** The same for one that is staged in a folder: only where that could not be moved as a whole. */
  inside: { path: string[]; staged: number; folder: number }
  link: { path: string[]; to: string[] }
  /** `before`: what it was, of something that is there already. */
  meta: { path: string[]; before: Attributes | null } & Attributes
}

export interface JournalWriter {
  add<S extends Section>(section: S, operation: Operations[S]): void
  /** Adds to `inside`, for all that is staged in one folder: most lines are of there (`npm run bench -- backups`, `small`). */
  inside(directory: readonly string[], folder: number): (name: string, staged: number) => void
  /** What is staged must be durable before. From the moment this resolves, the restore will happen. */
  commit(head: Omit<RestoreHead, 'version' | 'digests'>, made: Float64Array): Promise<void>
  /** Where the disk has failed after the commit was in place: nothing goes on with it, whatever of it cannot be removed. */
  retract(): void
  close(): void
}

export function createJournal(staging: Directory): JournalWriter {
  const sections = {} as Record<Section, { file: OpenFile; hash: Hash; text: string }>
  using opened = new DisposableStack()
  for (const section of SECTIONS) {
    const file = opened.use(createFileAt(staging, section, 0o600))
    sections[section] = { file, hash: createSectionHash(), text: '' }
  }
  const files = opened.move()

  function flush(section: Section): void {
    const to = sections[section]
    const bytes = Buffer.from(to.text)
    to.text = ''
    to.hash.update(bytes)
    writeFully(to.file.fd, bytes)
  }

  function write(section: Section, line: string): void {
    const to = sections[section]
    to.text += line
    if (to.text.length >= BUFFERED_BYTES) flush(section)
  }

  return {
    add: (section, operation) => write(section, `${JSON.stringify(operation)}\n`),
    inside(directory, folder) {
      const begin = `{"path":[${directory.map((name) => `${JSON.stringify(name)},`).join('')}`
      const end = `,"folder":${folder}}\n`
      return (name, staged) => write('inside', `${begin}${JSON.stringify(name)}],"staged":${staged}${end}`)
    },
    async commit(head, made) {
      using madeFile = createFileAt(staging, MADE, 0o600)
      const bytes = Buffer.from(made.buffer, made.byteOffset, made.byteLength)
      writeFully(madeFile.fd, bytes)
      const digests: RestoreHead['digests'] = { [MADE_DIGEST]: digestOf(createSectionHash().update(bytes)) }
      for (const section of SECTIONS) {
        flush(section)
        digests[section] = digestOf(sections[section].hash)
      }
      using headFile = createFileAt(staging, 'head.new', 0o600)
      writeFully(headFile.fd, Buffer.from(formatHead({ version: 3, ...head, digests })))
      await syncTogether([madeFile, headFile, ...SECTIONS.map((section) => sections[section].file)], staging)
      renameAt(staging, 'head.new', staging, COMMITTED)
      await fsyncDirectory(staging)
    },
    retract() {
      if (statsIfThere(staging, COMMITTED)) unlinkAt(staging, COMMITTED)
    },
    close: () => files.dispose(),
  }
}

/** A file system makes what comes together durable in one go. Waits for all of them, so that they can be closed then. */
async function syncTogether(files: OpenFile[], directory: Directory): Promise<void> {
  const ends = await Promise.allSettled([...files.map(fsyncFile), fsyncDirectory(directory)])
  const failed = ends.find((end) => end.status === 'rejected')
  if (failed) throw failed.reason
}

const createSectionHash = () => createHash('blake2b512')
const digestOf = (hash: Hash) => hash.digest().subarray(0, ID_BYTES).toString('hex')

/** A section has a line for every file, so it is not read whole. */
function* piecesOf(staging: Directory, list: string): Generator<Buffer> {
  const piece = Buffer.allocUnsafeSlow(BUFFERED_BYTES)
  using file = openDescriptor(addressOf(staging, list), constants.O_RDONLY | constants.O_NOFOLLOW)
  const read = () => readSync(file.fd, piece)
  for (let length = read(); length > 0; length = read()) yield piece.subarray(0, length)
}

/** Many operations at a time. */
export function* operationsOf<S extends Section>(staging: Directory, section: S): Generator<Operations[S][]> {
  let rest = Buffer.alloc(0)
  for (const piece of piecesOf(staging, section)) {
    const end = piece.lastIndexOf(NEWLINE) + 1
    if (end > 0)
      yield Buffer.concat([rest, piece.subarray(0, end - 1)])
        .toString()
        .split('\n')
        .map((line) => JSON.parse(line) as Operations[S])
    rest = Buffer.concat([end > 0 ? Buffer.alloc(0) : rest, piece.subarray(end)])
  }
}

/** Undefined where the restore was never committed: nothing but staging was touched. */
export function readPhase(staging: Directory): RestorePhase | undefined {
  return PHASES.find((phase) => statsIfThere(staging, phase) !== undefined)
}

/** Durable once it resolves. */
export async function changePhase(
  staging: Directory,
  from: RestorePhase | typeof FIRST_FORMAT,
  to: RestorePhase,
): Promise<void> {
  renameAt(staging, from, staging, to)
  await fsyncDirectory(staging)
}

/**
 * Durable once it resolves: on the way back nothing that was placed is in the tree any more. What is at those paths from
 * now on has come back, and must not be taken for something that was placed.
 */
export async function markTakenBack(staging: Directory): Promise<void> {
  createFileAt(staging, TAKEN_BACK, 0o600)[Symbol.dispose]()
  await fsyncDirectory(staging)
}

export const isTakenBack = (staging: Directory) => statsIfThere(staging, TAKEN_BACK) !== undefined

/** Before anything is placed again. */
export async function unmarkTakenBack(staging: Directory): Promise<void> {
  if (!isTakenBack(staging)) return
  unlinkAt(staging, TAKEN_BACK)
  await fsyncDirectory(staging)
}

/** Throws where it is not what was written. */
export function readHead(staging: Directory, phase: RestorePhase): RestoreHead {
  const head = parseHead(readFileSync(addressOf(staging, phase), 'utf8'))
  if (!head) throw new Error('a restore journal is damaged')
  return head
}

/** As `readHead`, with every list checked against its digest. */
export function readCommitment(staging: Directory, phase: RestorePhase): RestoreHead {
  const head = readHead(staging, phase)
  for (const list of [...sectionsOf(head), ...(head.version === 1 ? [] : [MADE])]) {
    const hash = createSectionHash()
    for (const piece of piecesOf(staging, list)) hash.update(piece)
    const key = list === MADE && head.version > 2 ? MADE_DIGEST : list
    if (digestOf(hash) !== head.digests[key]) throw new Error(`the ${list} part of a restore journal is damaged`)
  }
  return head
}

/** Those that a journal of that version has. */
export function sectionsOf({ version }: RestoreHead): readonly Section[] {
  return version > 2 ? SECTIONS : SECTIONS.filter((section) => section !== 'inside')
}

interface Look {
  ino: number
  size: number
  mtimeMs: number
}

/** Grows with what is staged; three numbers for each. */
export function createMadeList() {
  let numbers = new Float64Array(3 * 256)
  return {
    add(staged: number, { ino, size, mtimeMs }: Look): void {
      // What it was before is given back at once: there may be megabytes of it.
      while (numbers.length < 3 * (staged + 1))
        numbers = new Float64Array(numbers.buffer.transfer(numbers.byteLength * 2))
      numbers[3 * staged] = ino
      numbers[3 * staged + 1] = size
      numbers[3 * staged + 2] = mtimeMs
    },
    take: (count: number) => numbers.subarray(0, 3 * count),
  }
}

export function readMade(staging: Directory): {
  ino(staged: number): number
  isAsMade(staged: number, now: Look): boolean
} {
  const bytes = readFileSync(addressOf(staging, MADE))
  const numbers = new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength))
  const at = (index: number) => numbers[index] ?? -1
  return {
    ino: (staged) => at(3 * staged),
    isAsMade: (staged, { ino, size, mtimeMs }) =>
      at(3 * staged) === ino && at(3 * staged + 1) === size && at(3 * staged + 2) === mtimeMs,
  }
}

/** Somebody has taken it away since, or put something else where a directory above it was. */
export function isGone(error: unknown): boolean {
  return isFailure(error, 'not_found') || isFailure(error, 'invalid_path') || hasCode(error, 'ENOENT', 'ENOTDIR')
}
