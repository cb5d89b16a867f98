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

/** A directory comes before what it holds. The top itself is not given. What vanishes meanwhile is left out. */
export async function* walk(top: Directory, options: WalkOptions = {}): AsyncGenerator<WalkEntry, void, undefined> {
  const turn = createTurns(options.signal)
  const mounts = createMountCheck(top)
  const levels: { directory: Directory; names: Names }[] = []
  try {
    levels.push({ directory: top, names: namesOf(top, options.sorted ?? false) })
    for (let level = levels.at(-1); level; level = levels.at(-1)) {
      if (turn.due()) await turn.take()
      const name = level.names.next()
      if (name === undefined) {
        levels.pop()
        level.names.close()
        if (levels.length > 0) level.directory[Symbol.dispose]()
        continue
      }
      const stats = statsIfThere(level.directory, name)
      if (!stats) continue
      const isMountPoint = stats.isDirectory() && mounts.isCrossing(level.directory, name, stats)
      const path = childPath(level.directory.path, name)
      const entry: WalkEntry = { parent: level.directory, name, path, stats, isMountPoint }
      yield entry
      if (!stats.isDirectory() || isMountPoint || options.enter?.(entry) === false) continue
      if (levels.length >= MAX_DEPTH) throw fail('invalid_path', `Directories are nested deeper than ${MAX_DEPTH}.`)
      const child = openIfStillThere(level.directory, name)
      if (child) levels.push(enter(child, options.sorted ?? false))
    }
  } finally {
    for (const [index, level] of levels.entries()) {
      level.names.close()
      if (index > 0) level.directory[Symbol.dispose]()
    }
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
    due: () => (++count & 31) === 0 && performance.now() - since > TURN_MS,
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
