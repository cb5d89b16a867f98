// Goes through a tree without ever following a symlink or crossing into another file system. System calls here are
// synchronous: on a local disk one costs a few microseconds, a round through the thread pool ten times that; the event
// loop gets its turn every few milliseconds instead.
import { type BigIntStats, type Dir, opendirSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fail } from '../../contract/errors.ts'
import { hasCode } from '../../kit/errno.ts'
import { type Directory, openChild, statsIfThere } from './directory.ts'
import { nameFromLatin1 } from './names.ts'
import { childPath } from './paths.ts'

const BUFFERED_ENTRIES = 512
const TURN_MS = 8
const MAX_DEPTH = 512

export interface WalkEntry {
  /** Open until the generator is asked for the next entry. */
  readonly parent: Directory
  readonly name: string
  readonly path: string
  readonly stats: BigIntStats
  /** A directory of another file system: given, never entered. */
  readonly isMountPoint: boolean
}

export interface WalkOptions {
  signal?: AbortSignal
  /** In the order of their names' bytes within each directory; needs one directory's names in memory. */
  sorted?: boolean
  /** Says which directories to leave out, with all they hold. */
  enter?: (entry: WalkEntry) => boolean
}

/** For whoever passes over so many entries that waiting for each would cost more than the rest: see `createTurns`. */
export interface Walk extends Disposable {
  /** Undefined at the end. What an entry was given with is open until the next is asked for. */
  next(): WalkEntry | undefined
}

/** A directory comes before what it holds. The top itself is not given. What vanishes meanwhile is left out. */
export async function* walk(top: Directory, options: WalkOptions = {}): AsyncGenerator<WalkEntry, void, undefined> {
  const turn = createTurns(options.signal)
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
  const levels: { directory: Directory; names: Names }[] = [{ directory: top, names: namesOf(top, isSorted) }]
  let given: WalkEntry | undefined

  function descend(entry: WalkEntry): void {
    if (!entry.stats.isDirectory() || entry.isMountPoint || options.enter?.(entry) === false) return
    if (levels.length >= MAX_DEPTH) throw fail('invalid_path', `Directories are nested deeper than ${MAX_DEPTH}.`)
    const child = openIfStillThere(entry.parent, entry.name)
    if (child) levels.push(enter(child, isSorted))
  }

  function ascend(): void {
    const level = levels.pop()
    level?.names.close()
    if (levels.length > 0) level?.directory[Symbol.dispose]()
  }

  return {
    next() {
      if (given) descend(given)
      given = undefined
      for (let level = levels.at(-1); level; level = levels.at(-1)) {
        const { directory } = level
        const name = level.names.next()
        if (name === undefined) {
          ascend()
          continue
        }
        const stats = statsIfThere(directory, name)
        if (!stats) continue
        const isMountPoint = stats.isDirectory() && mounts.isCrossing(directory, name, stats)
        given = { parent: directory, name, path: childPath(directory.path, name), stats, isMountPoint }
        return given
      }
      return undefined
    },
    [Symbol.dispose]() {
      while (levels.length > 0) ascend()
    },
  }
}

function enter(directory: Directory, sorted: boolean) {
  try {
    return { directory, names: namesOf(directory, sorted) }
  } catch (error) {
    directory[Symbol.dispose]()
    throw error
  }
}

export function openIfStillThere(parent: Directory, name: string): Directory | undefined {
  try {
    return openChild(parent, name)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR', 'ELOOP')) return undefined
    throw error
  }
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

/** Lets the event loop run and the signal be seen without paying for it at every entry. */
export function createTurns(signal?: AbortSignal) {
  let since = performance.now()
  let count = 0
  return {
    due: () => (++count & 3) === 0 && performance.now() - since > TURN_MS,
    async take() {
      await nextTurn()
      signal?.throwIfAborted()
      since = performance.now()
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
