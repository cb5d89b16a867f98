// Goes through a tree without ever following a symlink or crossing into another file system. System calls here are
// synchronous: on a local disk one costs a few microseconds, a round trip through the thread pool ten times that
// (`npm run bench -- backups`, `unchanged`); the event loop gets its turn every few milliseconds instead.
import { type Dir, fstatSync, opendirSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { MAX_DEPTH } from '../../../contract/fixed-limits.ts'
import { isOutOfDescriptors } from '../../../kit/files/errno.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import { openDescent, openIfStillThere } from './descent.ts'
import { type Directory, statsIfThere } from './directory.ts'
import { createLookAhead, type LookAhead, type Lookers } from './look-ahead.ts'
import { type EntryStats, type Listed, namesIn, type Seen } from './looked.ts'
import { nameFromLatin1 } from './names.ts'
import { childPath, splitPath } from './paths.ts'

const BUFFERED_ENTRIES = 512
/** Levels whose names are read bit by bit, each by a descriptor of its own; further down they are read at once. */
const STREAMED_LEVELS = 32

export interface WalkEntry {
  /** Open until the generator is asked for the next entry. */
  readonly parent: Directory
  readonly name: string
  readonly path: string
  readonly stats: EntryStats
  /** When the stats were taken, or just before. */
  readonly seenAt: number
  /** A directory of another file system: given, never entered. */
  readonly isMountPoint: boolean
  /** A directory with something in it that is nested deeper than `MAX_DEPTH`: given, never entered, unless `anyDepth`. */
  readonly isTooDeep: boolean
}

export interface WalkOptions {
  signal?: AbortSignal
  /** In the order of their names' bytes within each directory; needs one directory's names in memory. */
  sorted?: boolean
  /** Says which directories to leave out, with all they hold. */
  enter?: (entry: WalkEntry) => boolean
  /** To the very bottom. For whoever counts, and needs no path: at such a depth it is long. */
  anyDepth?: boolean
  /** Has what comes next looked at meanwhile, where it is `sorted`: see `Walk.waits`. */
  lookers?: Lookers
  /** Called with the path of a listed name that nothing has any more, and of a directory that vanished before it was entered. */
  onGone?: (path: string) => void
  /**
   * Called with the path from which the walk goes on where the way back up was cut off, since a directory far down was moved away: what
   * was still to come between the two is left out.
   */
  onCutOff?: (path: string) => void
}

/** For whoever passes over so many entries that waiting for each would cost more than the rest: see `createTurns`. */
export interface Walk extends Disposable {
  /** Undefined at the end. What an entry was given with is open until the next is asked for. */
  next(): WalkEntry | undefined
  /** To be awaited before the next is asked for, where others are looking at it: otherwise it is looked at twice. */
  waits(): Promise<void> | undefined
  /**
   * What comes before `path` is left out: names as bytes read as latin1, with a NUL between them. Directories on the way there
   * are entered and not given. It never goes back. Only where it is `sorted`.
   */
  skipTo(path: string): void
  /**
   * As `skipTo`, and gives what has that very path, if anything does, also where it was given last. What is after it comes next. Of what it
   * has passed already it gives nothing.
   */
  find(path: string): WalkEntry | undefined
}

/**
 * A directory comes before what it holds. The top itself is not given. What vanishes meanwhile is left out. `share`: as for
 * `createTurns`.
 */
export async function* walk(
  top: Directory,
  share: string,
  options: WalkOptions = {},
): AsyncGenerator<WalkEntry, void, undefined> {
  const turn = createTurns(share, options.signal)
  using entries = openWalk(top, options)
  for (let entry = entries.next(); entry; entry = entries.next()) {
    if (turn.due()) await turn.take()
    yield entry
  }
}

/** As `walk`, without turns for the event loop, which are then the caller's to give. The top stays the caller's too. */
export function openWalk(top: Directory, options: Omit<WalkOptions, 'signal'> = {}): Walk {
  const isSorted = options.sorted ?? false
  const mounts = createMountCheck(top)
  const descent = openDescent(top)
  const levelsBelowTop = options.anyDepth ? Number.POSITIVE_INFINITY : MAX_DEPTH - splitPath(top.path).length - 1
  /** Of the directories that one is in, from the top. */
  const ahead = isSorted && options.lookers ? createLookAhead(options.lookers) : undefined
  const levels: Names[] = [isSorted ? sortedNames(top, ahead) : streamedNames(top)]
  let given: WalkEntry | undefined
  /** Whether the stats of what was taken last are those that others saw: only then did they list its names no earlier than that. */
  let isSeenByOthers = false

  /** Whether it is in there then. */
  function descend(entry: WalkEntry): boolean {
    const { stats, isMountPoint, isTooDeep } = entry
    if (!stats.isDirectory() || isMountPoint || isTooDeep || options.enter?.(entry) === false) return false
    const listed = isSeenByOthers ? levels.at(-1)?.listed() : undefined
    if (!descent.enter(entry.name)) {
      options.onGone?.(entry.path)
      return false
    }
    const { current } = descent
    const isAtOnce = isSorted || levels.length >= STREAMED_LEVELS
    levels.push(isAtOnce ? sortedNames(current, ahead, listed) : streamedNames(current))
    return true
  }

  /** To where the next name is. */
  function proceed(): Names | undefined {
    if (given) descend(given)
    given = undefined
    for (let names = levels.at(-1); names; names = levels.at(-1)) {
      if (names.hasNext()) return names
      ascend()
    }
    return undefined
  }

  function ascend(): void {
    const isAtTop = levels.length === 1
    const count = isAtTop ? 1 : descent.leave()
    for (let left = count; left > 0; left--) levels.pop()?.close()
    if (count > 1) options.onCutOff?.(descent.current.path)
  }

  function describe(parent: Directory, name: string, stats: EntryStats, seenAt: number): WalkEntry {
    const isDirectory = stats.isDirectory()
    const isMountPoint = isDirectory && mounts.isCrossing(parent, name, stats)
    const isTooDeep = isDirectory && descent.depth >= levelsBelowTop && !isMountPoint && !isEmpty(parent, name)
    return { parent, name, path: childPath(parent.path, name), stats, seenAt, isMountPoint, isTooDeep }
  }

  /** What has the next name, if anything still does. */
  function take(names: Names): WalkEntry | undefined {
    const name = names.next()
    const parent = descent.current
    const seen = names.seen()
    const seenAt = seen?.seenAt ?? Date.now()
    isSeenByOthers = seen !== undefined
    const stats = seen === undefined ? statsIfThere(parent, name) : seen
    if (stats) return describe(parent, name, stats, seenAt)
    options.onGone?.(childPath(parent.path, name))
    return undefined
  }

  /** Up to the directory that is wanted, or that holds it. */
  function ascendTo(wanted: string[]): void {
    let shared = 0
    while (shared < Math.min(levels.length, wanted.length) - 1 && levels[shared]?.last() === wanted[shared]) shared++
    if (levels.length - 1 > shared) given = undefined
    while (levels.length - 1 > shared) ascend()
  }

  /** One level down. */
  function descendTo(name: string): boolean {
    const names = levels.at(-1)
    if (!names) return false
    if (!given || names.last() !== name) given = names.skipTo(name) ? take(names) : undefined
    const entry = given
    given = undefined
    return entry !== undefined && descend(entry)
  }

  /** What it has given last, or came to. */
  const position = () => levels.map((names) => names.last()).join('\0')

  /** To right before it. Where it is there, its name is the next of those. */
  function moveTo(path: string): Names | undefined {
    if (path <= position()) return undefined
    const wanted = path.split('\0')
    ascendTo(wanted)
    while (levels.length < wanted.length) if (!descendTo(wanted[levels.length - 1] ?? '')) return undefined
    given = undefined
    const names = levels.at(-1)
    return names?.skipTo(wanted.at(-1) ?? '') ? names : undefined
  }

  return {
    next() {
      for (let names = proceed(); names; names = proceed()) {
        given = take(names)
        if (given) return given
      }
      return undefined
    },
    waits: () => proceed()?.waits(),
    skipTo: (path) => void moveTo(path),
    find(path) {
      if (given && path === position()) return given
      const names = moveTo(path)
      // What it has given last stays: it may be a directory that is still to be entered.
      if (names) given = take(names)
      return names && given
    },
    [Symbol.dispose]() {
      for (const names of levels.splice(0)) names.close()
      descent[Symbol.dispose]()
    },
  }
}

function isEmpty(parent: Directory, name: string): boolean {
  using directory = openIfStillThere(parent, name)
  if (!directory) return true
  using stream = opendirSync(directory.address)
  return stream.readSync() === null
}

interface Names {
  hasNext(): boolean
  /** Only where there is one. */
  next(): string
  /** The last one, as it stands on disk, read as latin1. */
  last(): string
  /** Forward to that name, as `last` would give it, or to the one after where it would be. Whether it is there. */
  skipTo(bytes: string): boolean
  /** Of the last name, what others have seen: undefined where they have not looked. */
  seen(): Seen | undefined
  /** Of the last name, what the directory held. */
  listed(): Listed | undefined
  /** What the next name waits for. */
  waits(): Promise<void> | undefined
  close(): void
}

/** `listed`: what others have read there, if it was this directory. */
function sortedNames(directory: Directory, lookAhead: LookAhead | undefined, listed?: Listed): Names {
  const known = listed && isOf(listed, directory) ? listed : undefined
  const names = known ? namesIn(known) : readdirSync(directory.address, { encoding: 'latin1' }).sort()
  const ahead = lookAhead?.within(directory, names, known)
  let index = 0
  return {
    hasNext: () => index < names.length,
    next: () => nameFromLatin1(names[index++] ?? ''),
    last: () => names[index - 1] ?? '',
    skipTo(bytes) {
      index = firstFrom(names, bytes, index)
      return names[index] === bytes
    },
    seen: () => ahead?.seen(index - 1),
    listed: () => ahead?.listed(index - 1),
    waits: () => ahead?.waitFor(index),
    close: () => ahead?.end(),
  }
}

/** The index of the first name that is not before `bytes`, from that index on. */
function firstFrom(names: readonly string[], bytes: string, from: number): number {
  let [low, high] = [from, names.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((names[middle] ?? '') < bytes) low = middle + 1
    else high = middle
  }
  return low
}

function isOf({ dev, ino }: Listed, directory: Directory): boolean {
  const stats = fstatSync(directory.fd, { bigint: true })
  return stats.dev === dev && stats.ino === ino
}

const nothing = () => undefined
const nowhere = () => {
  throw new Error('only a sorted walk can skip')
}

function streamedNames(directory: Directory): Names {
  using opened = new DisposableStack()
  const stream: Dir = opened.use(opendirSync(directory.address, { encoding: 'latin1', bufferSize: BUFFERED_ENTRIES }))
  let open = true
  let next = stream.readSync()
  opened.move()
  return {
    hasNext: () => next !== null,
    next() {
      const name = next?.name ?? ''
      next = stream.readSync()
      return nameFromLatin1(name)
    },
    last: nowhere,
    skipTo: nowhere,
    seen: nothing,
    listed: nothing,
    waits: nothing,
    close() {
      if (open) stream.closeSync()
      open = false
    },
  }
}

/**
 * Another file system shows by its device number. A bind mount of the same one does not; only when something is mounted
 * beneath the tree at all is each directory's mount id looked up.
 */
export function createMountCheck(top: Directory) {
  const device = statsIfThere(top, '.')?.dev
  const mounted = isSomethingMountedBeneath(top)
  const topMount = mounted ? mountId(top) : undefined
  return {
    isCrossing(parent: Directory, name: string, stats: Pick<EntryStats, 'dev'>): boolean {
      if (stats.dev !== device) return true
      if (!mounted) return false
      using child = openIfStillThere(parent, name)
      return child !== undefined && mountId(child) !== topMount
    },
  }
}

export function isSomethingMountedBeneath(top: Directory): boolean {
  try {
    const real = `${realpathSync(top.address)}/`
    const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
    return lines.some((line) => unescapeMount(line.split(' ')[4] ?? '').startsWith(real))
  } catch (error) {
    // Whoever removes a tree must not take what is mounted in it for a part of it.
    if (isOutOfDescriptors(error)) throw error
    return false
  }
}

function unescapeMount(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}

function mountId(directory: Directory): string | undefined {
  return /^mnt_id:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${directory.fd}`, 'utf8'))?.[1]
}
