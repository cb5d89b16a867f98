// The only door to a server's files. Every path from a caller is walked name by name through directory descriptors, and
// every operation ends in (directory descriptor, one name); see directory.ts for why nothing leads out.
import { type BigIntStats, fstatSync, realpathSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { fail, isFailure } from '../../../contract/errors.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import { hasDescriptorPaths } from './addresses.ts'
import {
  type Directory,
  lstatAt,
  mkdirAt,
  type OpenFile,
  openChild,
  openFileAt,
  openRoot,
  readlinkAt,
  statsIfThere,
} from './directory.ts'
import { explain, explained } from './errors.ts'
import { giveTo, type Owner, ownerWithin } from './ownership.ts'
import { checkNewName, formatPath, parsePath, refuseDepth, type Segments } from './paths.ts'
import { openWalk, type Walk, type WalkEntry, type WalkOptions, walk } from './walk.ts'

const MAX_LINKS = 40

export interface Place extends Disposable {
  readonly parent: Directory
  readonly name: string
  readonly path: string
}

/** Paths are taken as text or already parsed. Every descriptor handed out is closed by `using` or by the `with…` call. */
export interface Sandbox {
  readonly rootPath: string
  /** Whose share of the event loop a walk takes: the id of the server, whichever of its folders it is. */
  readonly share: string
  /** Follows nothing: for writing. */
  openDirectory(path: string | Segments): Directory
  /** Follows symlinks that stay inside: for reading. */
  openDirectoryToRead(path: string | Segments): Directory
  withDirectory<T>(path: string | Segments, work: (directory: Directory) => T | Promise<T>): Promise<T>
  /** The directory that holds the last name, which need not exist. Refuses the top. Follows nothing. */
  openPlace(path: string | Segments): Place
  /** As `openPlace`, with missing parents made. */
  openNewPlace(path: string | Segments, options?: NewPlaceOptions): Place
  withPlace<T>(path: string | Segments, work: (place: Place) => T | Promise<T>): Promise<T>
  /** A regular file, for reading, through symlinks that stay inside. */
  openFile(path: string | Segments): OpenFile
  /** Of the thing itself, not of what a symlink as the last name points to. */
  lstat(path: string | Segments): BigIntStats
  /** As `lstat`; undefined when the thing or a directory on the way is not there. */
  lstatIfThere(path: string | Segments): BigIntStats | undefined
  /** As far as there are directories, in one descent. Follows nothing: a symlink ends it as a file does. */
  reach(path: string | Segments): Reach
  /** Where the path leads once the symlinks in it, the last name's included, are followed. */
  resolve(path: string | Segments): Segments
  /** As `resolve`, with the last name left as it is. */
  resolveParent(path: string | Segments): Segments
  /** Whom everything belongs to that is made here; undefined where that is us. */
  owner(): Owner | undefined
  /** Makes one directory, which must be missing. */
  makeDirectory(parent: Directory, name: string): void
  /** A directory that was made elsewhere, for the owner of this one, has been put in here. */
  adopt(made: MadeDirectory): void
  /** Makes what is missing and opens the last. */
  mkdirs(path: string | Segments): Directory
  walk(path: string | Segments, options?: WalkOptions): AsyncGenerator<WalkEntry, void, undefined>
  /** As `walk`, for whoever gives the event loop its turns itself. */
  openWalk(path: string | Segments, options?: Omit<WalkOptions, 'signal'>): Walk
}

export interface MadeDirectory {
  /** As the caller would name it. */
  path: string
  stats: BigIntStats
}

export interface NewPlaceOptions {
  /** For what was there before, under whatever name. */
  anyName?: boolean
  /** Called for every directory that is made, the outermost first. */
  onMade?: (made: MadeDirectory) => void
}

export interface SandboxOptions {
  descriptors?: boolean
  /** Called for every directory that is made on the way to something. */
  onMade?: (made: MadeDirectory) => void
}

/** Opens the directory that is `segments[index]`, in that of the names before it. */
type Step = (parent: Directory, segments: Segments, index: number) => Directory

/** How far a path leads through directories. */
export interface Reach {
  /** How many of its names are there. */
  depth: number
  /** Of the last that is there; undefined where that is the top. */
  stats: BigIntStats | undefined
}

/** Of a folder of a server, which lies in one that has the name of its id. */
export const shareOf = (rootPath: string) => basename(dirname(rootPath))

/** Holds nothing open itself, so a tree that is swapped as a whole is seen by the next call. */
export function openSandbox(rootPath: string, options: SandboxOptions = {}): Sandbox {
  const descriptors = options.descriptors ?? hasDescriptorPaths
  const share = shareOf(rootPath)
  const parsed = (path: string | Segments) => (typeof path === 'string' ? parsePath(path) : path)

  const owner = () => ownerWithin(rootPath)
  const own = (made: Directory, onMade?: (made: MadeDirectory) => void) => {
    giveTo(owner(), made.fd)
    const { path } = made
    const stats = fstatSync(made.fd, { bigint: true })
    options.onMade?.({ path, stats })
    onMade?.({ path, stats })
  }
  const openTop = () => explained('/', () => openRoot(rootPath, descriptors))

  function descend(segments: Segments, step: Step): Directory {
    let current = openTop()
    try {
      for (let index = 0; index < segments.length; index++) {
        using parent = current
        current = step(parent, segments, index)
      }
      return current
    } catch (error) {
      throw explain(error, formatPath(segments))
    }
  }

  function openDirectory(path: string | Segments): Directory {
    return descend(parsed(path), openPlain)
  }

  function place(path: string | Segments, step: Step): Place {
    const segments = parsed(path)
    const name = segments.at(-1)
    if (name === undefined) throw fail('invalid_path', 'The top directory itself is not allowed here.')
    const parent = descend(segments.slice(0, -1), step)
    return { parent, name, path: formatPath(segments), [Symbol.dispose]: () => parent[Symbol.dispose]() }
  }

  function resolve(path: string | Segments): Segments {
    let segments = parsed(path)
    for (let links = 0; links <= MAX_LINKS; links++) {
      const next = followFirstLink(openTop(), segments, () => realpathSync(rootPath))
      if (next === undefined) return segments
      segments = next
    }
    throw fail('invalid_path', 'The path leads through too many symbolic links.')
  }

  /** Between resolving and opening a link may change: the opening follows nothing, so it fails, and is tried again. */
  function afterResolving<T>(path: string | Segments, open: (segments: Segments) => T): T {
    for (let attempt = 0; ; attempt++) {
      try {
        return open(resolve(path))
      } catch (error) {
        if (attempt >= 2 || !isFailure(error, 'invalid_path')) throw error
      }
    }
  }

  const openPlace = (path: string | Segments) => place(path, openPlain)

  function reach(path: string | Segments): Reach {
    const segments = parsed(path)
    let current = openTop()
    let stats: BigIntStats | undefined
    try {
      for (const [depth, name] of segments.entries()) {
        const next = statsIfThere(current, name)
        if (!next) return { depth, stats }
        stats = next
        if (!next.isDirectory() || depth === segments.length - 1) return { depth: depth + 1, stats }
        using parent = current
        current = openChild(parent, name)
      }
      return { depth: 0, stats }
    } catch (error) {
      throw explain(error, formatPath(segments))
    } finally {
      current[Symbol.dispose]()
    }
  }

  function lstat(path: string | Segments): BigIntStats {
    const segments = parsed(path)
    if (segments.length === 0) {
      using top = openTop()
      return lstatAt(top, '.')
    }
    using found = openPlace(segments)
    return explained(found.path, () => lstatAt(found.parent, found.name))
  }

  return {
    rootPath,
    share,
    openDirectory,
    openDirectoryToRead: (path) => afterResolving(path, openDirectory),
    async withDirectory(path, work) {
      using opened = openDirectory(path)
      return await work(opened)
    },
    openPlace,
    openNewPlace(path, { anyName = false, onMade } = {}) {
      const ownAndTell = (made: Directory) => own(made, onMade)
      return place(path, anyName ? createRemaking(ownAndTell) : createMaking(ownAndTell))
    },
    owner,
    adopt: (made) => options.onMade?.(made),
    makeDirectory(parent, name) {
      mkdirAt(parent, name)
      using made = openUnfollowed(parent, name)
      own(made)
    },
    async withPlace(path, work) {
      using opened = openPlace(path)
      return await work(opened)
    },
    openFile: (path) =>
      afterResolving(path, (segments) => {
        if (segments.length === 0) throw fail('invalid_path', 'The top directory is not a file.')
        using found = openPlace(segments)
        return explained(found.path, () => openFileAt(found.parent, found.name))
      }),
    lstat,
    reach,
    lstatIfThere(path) {
      try {
        return lstat(path)
      } catch (error) {
        if (isFailure(error, 'not_found')) return undefined
        throw error
      }
    },
    resolve,
    resolveParent(path) {
      const segments = parsed(path)
      return segments.length === 0 ? segments : [...resolve(segments.slice(0, -1)), ...segments.slice(-1)]
    },
    mkdirs: (path) => descend(parsed(path), createMaking(own)),
    async *walk(path, options) {
      using top = openDirectory(path)
      yield* walk(top, share, options)
    },
    openWalk(path, options) {
      const top = openDirectory(path)
      try {
        const entries = openWalk(top, options)
        return {
          next: entries.next,
          waits: entries.waits,
          skipTo: entries.skipTo,
          find: entries.find,
          [Symbol.dispose]() {
            entries[Symbol.dispose]()
            top[Symbol.dispose]()
          },
        }
      } catch (error) {
        top[Symbol.dispose]()
        throw error
      }
    },
  }
}

const openPlain: Step = (parent, segments, index) => openUnfollowed(parent, segments[index] ?? '')

function openUnfollowed(parent: Directory, name: string): Directory {
  try {
    return openChild(parent, name)
  } catch (error) {
    // Linux answers ENOTDIR for a symlink opened with O_DIRECTORY|O_NOFOLLOW: the caller should hear which it is.
    if (hasCode(error, 'ENOTDIR', 'ELOOP') && statsIfThere(parent, name)?.isSymbolicLink())
      throw fail('invalid_path', 'The path leads through a symbolic link, which is not followed here.', error)
    throw error
  }
}

/** For one descent. All that is missing is checked, once, before the first of it is made. */
function createMaking(own: (made: Directory) => void): Step {
  let isChecked = false
  return (parent, segments, index) => {
    const checkMissing = () => {
      for (const missing of isChecked ? [] : segments.slice(index)) checkNewName(missing)
      isChecked = true
    }
    return openOrElse(parent, segments[index] ?? '', checkMissing, own)
  }
}

/** For what was there before under that name, however odd it is. */
function createRemaking(own: (made: Directory) => void): Step {
  return (parent, segments, index) => openOrElse(parent, segments[index] ?? '', () => {}, own)
}

function openOrElse(
  parent: Directory,
  name: string,
  checkMissing: () => void,
  own: (made: Directory) => void,
): Directory {
  try {
    return openUnfollowed(parent, name)
  } catch (error) {
    if (hasCode(error, 'ENOTDIR')) throw fail('already_exists', `A file named ${JSON.stringify(name)} is in the way.`)
    if (!hasCode(error, 'ENOENT')) throw error
  }
  checkMissing()
  try {
    mkdirAt(parent, name)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw explain(error, name)
    return openUnfollowed(parent, name)
  }
  using held = new DisposableStack()
  const made = held.use(openUnfollowed(parent, name))
  own(made)
  held.move()
  return made
}

/** The path with its first symlink replaced by where it points; undefined when there is none. */
function followFirstLink(root: Directory, segments: Segments, realRoot: () => string): Segments | undefined {
  let current = root
  try {
    for (const [index, name] of segments.entries()) {
      const stats = lstatAt(current, name)
      if (stats.isSymbolicLink()) {
        const target = readlinkAt(current, name)
        const next = [...applyTarget(segments.slice(0, index), target, realRoot), ...segments.slice(index + 1)]
        refuseDepth(next)
        return next
      }
      if (index < segments.length - 1) {
        using parent = current
        current = openChild(parent, name)
      }
    }
    return undefined
  } catch (error) {
    throw explain(error, formatPath(segments))
  } finally {
    current[Symbol.dispose]()
  }
}

function applyTarget(base: Segments, target: string, realRoot: () => string): Segments {
  const outside = () => fail('invalid_path', 'A symbolic link in the path leads out of the server.')
  let stack = [...base]
  let rest = target
  if (target.startsWith('/')) {
    const inside = `${realRoot()}/`
    if (!`${target}/`.startsWith(inside)) throw outside()
    stack = []
    rest = target.slice(inside.length)
  }
  for (const name of rest.split('/')) {
    if (name === '..' && stack.pop() === undefined) throw outside()
    if (name !== '..' && name !== '.' && name !== '') stack.push(name)
  }
  return stack
}
