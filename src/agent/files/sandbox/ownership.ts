// Whom files belong to, and what their modes may be. The service may run as root while a server has a user of its own:
// the one that its top directory belongs to. What the service makes there belongs to that user too, and what it writes
// over keeps its owner. It never gives a file more than the nine permission bits: with a tenant's content and an owner that
// is not the tenant, a setuid file would be a way in. On a directory setgid and sticky only say whom new files belong to
// and who may remove them, so a backup keeps those.
import {
  type BigIntStats,
  chmodSync,
  chownSync,
  constants,
  fchownSync,
  fstatSync,
  lchownSync,
  lstatSync,
} from 'node:fs'
import { type Descriptor, openDescriptor } from '../../../kit/files/descriptor.ts'
import { descriptorPath, hasDescriptorPaths } from './addresses.ts'

const isRoot = process.getuid?.() === 0
const PERMISSIONS = 0o777
const DIRECTORY_BITS = 0o3000
/** open(2), the same on every platform that Node runs Linux on: names a thing without opening it. */
const O_PATH = 0o10000000

export interface Owner {
  uid: number
  gid: number
}

export function permissionsOf({ mode }: { mode: bigint | number }): number {
  return Number(mode) & PERMISSIONS
}

/** What a backup keeps of a mode, and a restore sets again. */
export function keptModeOf(thing: { mode: bigint | number }, isDirectory: boolean): number {
  return Number(thing.mode) & (isDirectory ? PERMISSIONS | DIRECTORY_BITS : PERMISSIONS)
}

/** Of what is made beneath the folder; undefined where it is ours, or nothing can be given away. */
export function ownerWithin(folder: string): Owner | undefined {
  if (!isRoot) return undefined
  const { uid, gid } = lstatSync(folder)
  return uid === 0 && gid === 0 ? undefined : { uid, gid }
}

/** What we have just made, and nobody else can have replaced yet. A symlink itself, not what it leads to. */
export function giveTo(owner: Owner | undefined, made: string | Buffer | number): void {
  if (!owner) return
  if (typeof made === 'number') fchownSync(made, owner.uid, owner.gid)
  else lchownSync(made, owner.uid, owner.gid)
}

/** A file of ours that takes the place of another. */
export function takeAfter(address: string | Buffer, before: { uid: bigint; gid: bigint; mode: bigint }): void {
  // First: changing the owner may take bits of the mode away.
  if (isRoot) chownSync(address, Number(before.uid), Number(before.gid))
  chmodSync(address, permissionsOf(before))
}

/** A thing by a descriptor that only names it, so that its mode and owner can be changed, whatever its name becomes. */
export interface Reference extends Disposable {
  readonly stats: BigIntStats
  /** For calls that follow symlinks: of the very thing. */
  readonly address: string | Buffer
  /** To sync it. Only for a regular file or a directory: anything else would be opened too. */
  openToSync(): Descriptor
}

/** Follows nothing, and opens neither a pipe nor a device. What it is has to be looked at before it is changed. */
export function openReference(named: string | Buffer): Reference {
  const opened = openDescriptor(named, O_PATH | constants.O_NOFOLLOW)
  try {
    const unfollowed = hasDescriptorPaths ? 0 : constants.O_NOFOLLOW
    // Asked for again each time: a closed number may be another file by then, and throws.
    const address = () => (hasDescriptorPaths ? descriptorPath(opened.fd) : named)
    return {
      stats: fstatSync(opened.fd, { bigint: true }),
      get address() {
        return address()
      },
      openToSync: () => openDescriptor(address(), constants.O_RDONLY | constants.O_NONBLOCK | unfollowed),
      [Symbol.dispose]: () => opened[Symbol.dispose](),
    }
  } catch (error) {
    opened[Symbol.dispose]()
    throw error
  }
}

/** Whether the system lets us change the mode of it. */
export function isOursToChange({ uid }: { uid: bigint }): boolean {
  return isRoot || Number(uid) === process.geteuid?.()
}

/** Whether its permissions are these, and a file has no other bits. */
export function hasPermissions(stats: BigIntStats, permissions: number): boolean {
  return (Number(stats.mode) & (stats.isDirectory() ? PERMISSIONS : 0o7777)) === permissions
}

/** A directory keeps its setgid and sticky bits, as by chmod(1); a file has no more than the nine. */
export function setPermissions({ stats, address }: Reference, permissions: number): void {
  const others = stats.isDirectory() ? Number(stats.mode) & DIRECTORY_BITS : 0
  chmodSync(address, others | permissions)
}
