// An open directory, and the operations that end in (directory descriptor, one name). The kernel resolves
// `/proc/<number>/fd/<fd>/<name>` from the descriptor, whatever has become of the directory's path meanwhile, and every call
// here treats a symlink as the last name as itself: so nothing swapped in while we work leads out.
import {
  type BigIntStats,
  constants,
  fstatSync,
  fsync,
  linkSync,
  lstatSync,
  mkdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmdirSync,
  unlinkSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { fail } from '../../../contract/errors.ts'
import { type Descriptor, openDescriptor } from '../../../kit/files/descriptor.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import { addressIn, descriptorPath, hasDescriptorPaths, isOfDescriptor } from './addresses.ts'
import { nameFromBytes } from './names.ts'
import { childPath } from './paths.ts'

export const OPEN_DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
const OPEN_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY

/** Both are closed once, however often they are disposed of, and throw when they are used after that. */
interface Opened extends Disposable {
  readonly fd: number
  /** For calls in other threads: see `Descriptor`. */
  use<T>(work: (fd: number) => Promise<T>): Promise<T>
}

export interface Directory extends Opened {
  /** As the caller would name it: "/" is the top of the sandbox. For messages and answers, never for system calls. */
  readonly path: string
  /** How the kernel is told of this directory: `/proc/<number>/fd/<fd>`, or its real path where there is no /proc. */
  readonly address: string
}

export interface OpenFile extends Opened {
  /** Opens the same file again, whatever its name has become: for calls that want a path. */
  readonly address: string | Buffer
  readonly stats: BigIntStats
  /** As `Descriptor.read`. */
  read(into: Uint8Array, offset: number, length: number, position: number): Promise<number>
  /** Hands the descriptor over to somebody else, who then closes it. */
  release(): Descriptor
}

/** `realPath` is trusted: it comes from the layout, never from a caller. */
export function openRoot(realPath: string, descriptors = hasDescriptorPaths): Directory {
  const realRoot = descriptors ? undefined : realpathSync(realPath)
  return new DirectoryByDescriptor(openDescriptor(realPath, OPEN_DIRECTORY), '/', realRoot)
}

/**
 * One of a server's own folders, made where it is missing. One level only: once the server is put aside, nobody makes a
 * second one in its place.
 */
export function openOwnFolder(realPath: string): Directory {
  try {
    return openRoot(realPath)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
  try {
    mkdirSync(realPath, { mode: 0o700 })
  } catch (error) {
    if (hasCode(error, 'ENOENT')) throw fail('not_found', 'No such server.', error)
    if (!hasCode(error, 'EEXIST')) throw error
  }
  return openRoot(realPath)
}

/** Opens a subdirectory. A symlink or anything else that is not a directory is ENOTDIR or ELOOP. */
export function openChild(parent: Directory, name: string): Directory {
  const at = addressOf(parent, name)
  const opened = openDescriptor(at, OPEN_DIRECTORY)
  const path = childPath(parent.path, name)
  if (usesDescriptors(parent)) return new DirectoryByDescriptor(opened, path, undefined)
  using held = new DisposableStack()
  held.use(opened)
  const real = realpathSync(at)
  if (real !== at) throw fail('invalid_path', 'The path leads through a symbolic link.')
  held.move()
  return new DirectoryByDescriptor(opened, path, real)
}

/** The directory that holds it now, which the caller calls `path` and has to make sure of. */
export function openAbove(child: Directory, path: string): Directory {
  const opened = openDescriptor(`${child.address}/..`, OPEN_DIRECTORY)
  return new DirectoryByDescriptor(opened, path, usesDescriptors(child) ? undefined : dirname(child.address))
}

/** Whether its address stays right whatever becomes of its path. */
export const usesDescriptors = (opened: Directory) => isOfDescriptor(opened.address)

/** A class, since walks make very many of them. */
class DirectoryByDescriptor implements Directory {
  readonly path: string
  readonly #opened: Descriptor
  readonly #address: string

  constructor(opened: Descriptor, path: string, realPath: string | undefined) {
    this.path = path
    this.#opened = opened
    this.#address = realPath ?? descriptorPath(opened.fd)
  }

  get fd(): number {
    return this.#opened.fd
  }

  get address(): string {
    // A closed number may be another directory by now.
    if (!this.#opened.isOpen) throw new Error('a directory was used after it was closed')
    return this.#address
  }

  use<T>(work: (fd: number) => Promise<T>): Promise<T> {
    return this.#opened.use(work)
  }

  [Symbol.dispose](): void {
    this.#opened[Symbol.dispose]()
  }
}

/** For calls that this module does not have. The caller must not let the last name be followed. */
export const addressOf = (parent: Directory, name: string): string | Buffer => addressIn(parent.address, name)

export function lstatAt(parent: Directory, name: string): BigIntStats {
  return lstatSync(addressOf(parent, name), { bigint: true })
}

export function statsIfThere(parent: Directory, name: string): BigIntStats | undefined {
  return lstatSync(addressOf(parent, name), { bigint: true, throwIfNoEntry: false })
}

/** The target as it stands in the link, not resolved. */
export function readlinkAt(parent: Directory, name: string): string {
  return nameFromBytes(readlinkSync(addressOf(parent, name), { encoding: 'buffer' }))
}

/** For reading. Only ever a regular file: a FIFO, socket or device is refused before it could block or act. */
export function openFileAt(parent: Directory, name: string): OpenFile {
  const at = addressOf(parent, name)
  const kind = lstatSync(at)
  if (kind.isSymbolicLink()) throw fail('invalid_path', `${childPath(parent.path, name)} is a symbolic link.`)
  if (!kind.isFile()) throw notRegular(parent, name)
  return checked(openDescriptor(at, OPEN_FILE), parent, name)
}

/** For writing: makes the file, and fails with EEXIST when anything has the name. */
export function createFileAt(parent: Directory, name: string, mode = 0o644): OpenFile {
  return checked(createDescriptorAt(parent, name, mode), parent, name)
}

/** As `createFileAt`, for whoever makes very many: no more than the descriptor, which the caller closes. */
export function createDescriptorAt(parent: Directory, name: string, mode: number): Descriptor {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  return openDescriptor(addressOf(parent, name), flags, mode)
}

/** Opens a regular file that is there for reading and writing in place, without cutting it. */
export function openForUpdateAt(parent: Directory, name: string): OpenFile {
  const flags = constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK
  return checked(openDescriptor(addressOf(parent, name), flags), parent, name)
}

function checked(opened: Descriptor, parent: Directory, name: string): OpenFile {
  try {
    const stats = fstatSync(opened.fd, { bigint: true })
    if (!stats.isFile()) throw notRegular(parent, name)
    return new FileByDescriptor(
      opened,
      stats,
      usesDescriptors(parent) ? descriptorPath(opened.fd) : addressOf(parent, name),
    )
  } catch (error) {
    opened[Symbol.dispose]()
    throw error
  }
}

class FileByDescriptor implements OpenFile {
  readonly stats: BigIntStats
  readonly #opened: Descriptor
  readonly #address: string | Buffer

  constructor(opened: Descriptor, stats: BigIntStats, address: string | Buffer) {
    this.stats = stats
    this.#opened = opened
    this.#address = address
  }

  get fd(): number {
    return this.#opened.fd
  }

  get address(): string | Buffer {
    if (!this.#opened.isOpen) throw new Error('a file was used after it was closed')
    return this.#address
  }

  use<T>(work: (fd: number) => Promise<T>): Promise<T> {
    return this.#opened.use(work)
  }

  read(into: Uint8Array, offset: number, length: number, position: number): Promise<number> {
    return this.#opened.read(into, offset, length, position)
  }

  release(): Descriptor {
    return this.#opened.transfer()
  }

  [Symbol.dispose](): void {
    this.#opened[Symbol.dispose]()
  }
}

function notRegular(parent: Directory, name: string) {
  return fail('invalid_path', `${childPath(parent.path, name)} is not a regular file.`)
}

export function mkdirAt(parent: Directory, name: string, mode = 0o755): void {
  mkdirSync(addressOf(parent, name), { mode })
}

/** Replaces what has the target name, as rename(2) does. */
export function renameAt(from: Directory, name: string, to: Directory, toName: string): void {
  renameSync(addressOf(from, name), addressOf(to, toName))
}

/**
 * Fails with EEXIST when the target name is taken. For anything but a directory the kernel decides (link, then unlink);
 * a directory is looked for first, and the most that another process can lose in between is an empty directory. Where
 * the file system has no hard links the same is true of files, and the window is a file made in that instant.
 */
export function renameNewAt(from: Directory, name: string, to: Directory, toName: string): void {
  if (!lstatAt(from, name).isDirectory() && renamedByLink(from, name, to, toName)) return
  if (statsIfThere(to, toName)) throw Object.assign(new Error('the name is taken'), { code: 'EEXIST' })
  renameAt(from, name, to, toName)
}

/** Of a file system that has no hard links, or no more of them for this file. */
export const NO_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'] as const

/** Gives a file a second name. EEXIST where it is taken; false where there are no hard links. */
export function linkedAt(from: Directory, name: string, to: Directory, toName: string): boolean {
  try {
    linkSync(addressOf(from, name), addressOf(to, toName))
    return true
  } catch (error) {
    if (hasCode(error, ...NO_LINKS)) return false
    throw error
  }
}

/** False where there are no hard links. */
function renamedByLink(from: Directory, name: string, to: Directory, toName: string): boolean {
  if (!linkedAt(from, name, to, toName)) return false
  try {
    unlinkSync(addressOf(from, name))
  } catch (error) {
    // Whoever has taken the old name away has left the new one.
    if (hasCode(error, 'ENOENT')) return true
    // What fails has not happened. By now another program may have put something else under the new name.
    if (isSameFile(from, name, to, toName)) unlinkSync(addressOf(to, toName))
    throw error
  }
  return true
}

/** One inode under two names, in the same file system. */
export function isSameFile(a: Directory, aName: string, b: Directory, bName: string): boolean {
  const [one, other] = [statsIfThere(a, aName), statsIfThere(b, bName)]
  return one !== undefined && other !== undefined && one.ino === other.ino && one.dev === other.dev
}

export function unlinkAt(parent: Directory, name: string): void {
  unlinkSync(addressOf(parent, name))
}

export function rmdirAt(parent: Directory, name: string): void {
  rmdirSync(addressOf(parent, name))
}

const fsyncAsync = promisify(fsync)

/** What was made, renamed or removed in the directory is on disk once this resolves. */
export function fsyncDirectory(target: Directory): Promise<void> {
  return target.use(fsyncAsync)
}

export function fsyncFile(file: Pick<Descriptor, 'use'>): Promise<void> {
  return file.use(fsyncAsync)
}
