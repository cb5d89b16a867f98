// Goes through a tree without ever following a symlink or crossing into another file system. System calls here are
// synchronous: on a local disk one costs a few microseconds, a round trip through the thread pool ten times that
// (`npm run bench -- backups`, `unchanged`); the event loop gets its turn every few milliseconds instead.
import { type BigIntStats, type Dir, opendirSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { MAX_DEPTH } from '../../../contract/fixed-limits.ts'
import { createTurns } from '../../../kit/turns.ts'
import { openDescent, openIfStillThere } from './descent.ts'
import { type Directory, statsIfThere } from './directory.ts'
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
  readonly stats: BigIntStats
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
}

/** For whoever passes over so many entries that waiting for each would cost more than the rest: see `createTurns`. */
export interface Walk extends Disposable {
  /** Undefined at the end. What an entry was given with is open until the next is asked for. */
  next(): WalkEntry | undefined
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
  const levels: Names[] = [namesOf(top, isSorted)]
  let given: WalkEntry | undefined

  function descend(entry: WalkEntry): void {
    if (!entry.stats.isDirectory() || entry.isMountPoint || entry.isTooDeep || options.enter?.(entry) === false) return
    if (descent.enter(entry.name)) levels.push(namesOf(descent.current, isSorted || levels.length >= STREAMED_LEVELS))
  }

  function ascend(): void {
    const isAtTop = levels.length === 1
    for (let left = isAtTop ? 1 : descent.leave(); left > 0; left--) levels.pop()?.close()
  }

  function describe(parent: Directory, name: string, stats: BigIntStats): WalkEntry {
    const isMountPoint = stats.isDirectory() && mounts.isCrossing(parent, name, stats)
    const isTooDeep = stats.isDirectory() && descent.depth >= levelsBelowTop && !isMountPoint && !isEmpty(parent, name)
    return { parent, name, path: childPath(parent.path, name), stats, isMountPoint, isTooDeep }
  }

  return {
    next() {
      if (given) descend(given)
      given = undefined
      for (let names = levels.at(-1); names; names = levels.at(-1)) {
        const name = names.next()
        if (name === undefined) {
          ascend()
          continue
        }
        const parent = descent.current
        const stats = statsIfThere(parent, name)
        if (!stats) continue
        given = describe(parent, name, stats)
        return given
      }
      return undefined
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
  next(): string | undefined
  close(): void
}

function namesOf(directory: Directory, sorted: boolean): Names {
  if (sorted) {
    const names = readdirSync(directory.address, { encoding: 'latin1' }).sort()
    let index = 0
    return {
      next() {
        const name = names[index++]
        return name === undefined ? undefined : nameFromLatin1(name)
      },
      close() {},
    }
  }
  const stream: Dir = opendirSync(directory.address, { encoding: 'latin1', bufferSize: BUFFERED_ENTRIES })
  let open = true
  return {
    next() {
      const entry = stream.readSync()
      return entry === null ? undefined : nameFromLatin1(entry.name)
    },
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
  const mounted = somethingIsMountedBeneath(top)
  const topMount = mounted ? mountId(top) : undefined
  return {
    isCrossing(parent: Directory, name: string, stats: BigIntStats): boolean {
      if (stats.dev !== device) return true
      if (!mounted) return false
      using child = openIfStillThere(parent, name)
      return child !== undefined && mountId(child) !== topMount
    },
  }
}

function somethingIsMountedBeneath(top: Directory): boolean {
  try {
    const real = `${realpathSync(top.address)}/`
    const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
    return lines.some((line) => unescapeMount(line.split(' ')[4] ?? '').startsWith(real))
  } catch {
    return false
  }
}

function unescapeMount(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}

function mountId(directory: Directory): string | undefined {
  return /^mnt_id:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${directory.fd}`, 'utf8'))?.[1]
}
