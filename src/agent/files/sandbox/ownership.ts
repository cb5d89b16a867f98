// Whom files belong to, and what their modes may be. The service may run as root while a server has a user of its own:
// the one that its top directory belongs to. What the service makes there belongs to that user too, and what it writes
// over keeps its owner. It never gives a file more than the nine permission bits: with a tenant's content and an owner that
// is not the tenant, a setuid file would be a way in. On a directory setgid and sticky only say whom new files belong to
// and who may remove them, so a backup keeps those.
import { chmodSync, chownSync, fchownSync, lchownSync, lstatSync } from 'node:fs'

const isRoot = process.getuid?.() === 0
const PERMISSIONS = 0o777
const DIRECTORY_BITS = 0o3000

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
