// Copying beside the original. The bytes never pass through JavaScript: the kernel shares or copies them, in the thread
// pool. A copy is built in staging and appears under its name when it is whole.
import { type BigIntStats, chmodSync, fchmodSync, fstatSync, symlinkSync } from 'node:fs'
import type { FileEntry } from '../../contract/agent/agent-files.ts'
import { fail } from '../../contract/errors.ts'
import { MAX_DEPTH } from '../../contract/fixed-limits.ts'
import { hasCode } from '../../kit/files/errno.ts'
import { createWorkGroup } from '../../kit/waiting/work-group.ts'
import { type Change, journaled } from './changes/changes.ts'
import { inodeOf } from './changes/probes.ts'
import { moveToFreeName } from './changes/replace.ts'
import { type CloneOptions, cloneFile } from './clone.ts'
import { freeNames } from './free-names.ts'
import { describeAt } from './reading/entries.ts'
import {
  addressOf,
  type Directory,
  fsyncDirectory,
  fsyncFile,
  lstatAt,
  mkdirAt,
  type OpenFile,
  openChild,
  openFileAt,
  readlinkAt,
} from './sandbox/directory.ts'
import { explainedAsync } from './sandbox/errors.ts'
import { nameToDisk } from './sandbox/names.ts'
import { giveTo, type Owner, permissionsOf } from './sandbox/ownership.ts'
import { type Segments, splitPath } from './sandbox/paths.ts'
import { openSandbox, type Sandbox } from './sandbox/sandbox.ts'
import type { Staged } from './sandbox/staging.ts'
import { type WalkEntry, walk } from './sandbox/walk.ts'
import type { ServerFiles } from './server-files.ts'
import { type Amount, diskBytes, NOTHING, sum } from './space/amounts.ts'
import { countingGrowth } from './space/usage.ts'

const AT_ONCE = 8
/**
 * What takes no more than this is on disk before it is answered. More than that would take several times as long as
 * copying it, while the original, from which it can be made again, is on disk in any case.
 */
const SYNCED_BYTES = 64 * 1024 * 1024
const SYNCED_FILES = 5000

export async function copy(
  server: ServerFiles,
  location: string,
  change: Change,
  signal?: AbortSignal,
): Promise<FileEntry> {
  using _held = server.lock.share()
  using place = server.files.openPlace(server.files.resolveParent(location))
  return await explainedAsync(place.path, async () => {
    const stats = lstatAt(place.parent, place.name)
    if (!stats.isFile() && !stats.isDirectory() && !stats.isSymbolicLink())
      throw fail('invalid_path', `${JSON.stringify(place.path)} is not a file or a directory.`)
    const size = stats.isDirectory()
      ? await measure(server.files, place.parent, place.name, signal)
      : { bytes: diskBytes(stats), entries: 1 }
    using reservation = await server.usage.reserve(size.bytes, size.entries)
    await using staged = server.staging.open()
    const isSynced = size.bytes <= SYNCED_BYTES && size.entries <= SYNCED_FILES
    const written = await stage(place.parent, place.name, stats, staged, {
      isSynced,
      signal,
      share: server.files.share,
      owner: server.files.owner(),
      async takeRoom(bytes) {
        await reservation.grow(bytes)
        reservation.written(bytes)
      },
    })
    signal?.throwIfAborted()
    server.files.openPlace(splitPath(place.path))[Symbol.dispose]()
    await reservation.clear(written.bytes, written.entries)
    signal?.throwIfAborted()
    const inode = inodeOf(lstatAt(staged.folder, staged.name))
    const probe = { op: 'copied', from: location, directory: place.parent.path, inode } as const
    return await journaled(server, change, probe, async (durable) => {
      await durable
      signal?.throwIfAborted()
      // By its path: the directory may have been moved since, to where what was copied would be nested too deep.
      using target = server.files.openPlace(splitPath(place.path))
      const { parent } = target
      const names = freeNames(place.name, stats.isDirectory(), 'copy')
      const source = { folder: staged.folder, name: staged.name }
      const { name } = countingGrowth(server.usage, parent, () => moveToFreeName(source, parent, names))
      reservation.commit()
      await fsyncDirectory(parent)
      const entry = describeAt(parent, name)
      return { answer: entry, properties: { from: location, to: entry.path } }
    })
  })
}

async function measure({ share }: Sandbox, parent: Directory, name: string, signal?: AbortSignal) {
  using source = openChild(parent, name)
  const size = { bytes: diskBytes(lstatAt(source, '.')), entries: 1 }
  for await (const entry of walk(source, share, signal ? { signal } : {})) {
    refuseTooDeep(entry)
    size.entries++
    if (entry.stats.isFile() || entry.stats.isDirectory()) size.bytes += diskBytes(entry.stats)
  }
  return size
}

/** Half a copy would pass for a whole one. */
function refuseTooDeep({ isTooDeep }: WalkEntry): void {
  if (isTooDeep) throw fail('invalid_path', `It holds directories that are nested deeper than ${MAX_DEPTH}.`)
}

interface CopyOptions extends CloneOptions {
  isSynced: boolean
  /** Of the event loop. */
  share: string
  /** Of the copy. */
  owner: Owner | undefined
}

/** Answers what it made. */
async function stage(
  parent: Directory,
  name: string,
  stats: BigIntStats,
  staged: Staged,
  options: CopyOptions,
): Promise<Amount> {
  if (stats.isSymbolicLink()) {
    copyLink(parent, name, staged.folder, staged.name, options)
    return { bytes: diskBytes(lstatAt(staged.folder, staged.name)), entries: 1 }
  }
  if (stats.isFile()) {
    using source = openFileAt(parent, name)
    return { bytes: await cloneSynced(source, staged.folder, staged.name, options), entries: 1 }
  }
  using source = openChild(parent, name)
  mkdirAt(staged.folder, staged.name)
  const written = await copyTree(source, openSandbox(`${staged.folder.address}/${staged.name}`), options)
  giveTo(options.owner, addressOf(staged.folder, staged.name))
  chmodSync(addressOf(staged.folder, staged.name), permissionsOf(stats))
  return sum(written, { bytes: diskBytes(lstatAt(staged.folder, staged.name)), entries: 1 })
}

/** FIFOs, sockets, devices and what is mounted are left out. */
async function copyTree(source: Directory, target: Sandbox, options: CopyOptions): Promise<Amount> {
  const { signal } = options
  let written = NOTHING
  const depth = splitPath(source.path).length
  const copies = createWorkGroup(AT_ONCE)
  const modes: { path: Segments; mode: number }[] = []
  // Both are open before anything is awaited, while the walk is still there.
  const copyFile = async (entry: WalkEntry, path: Segments) => {
    using from = openUnlessGone(entry)
    if (!from) return
    using to = target.openPlace(path)
    const bytes = await cloneSynced(from, to.parent, to.name, options)
    written = sum(written, { bytes, entries: 1 })
  }
  try {
    for await (const entry of walk(source, options.share, signal ? { signal } : {})) {
      signal?.throwIfAborted()
      copies.check()
      refuseTooDeep(entry)
      if (entry.isMountPoint) continue
      using place = target.openPlace(splitPath(entry.path).slice(depth))
      if (entry.stats.isDirectory()) {
        mkdirAt(place.parent, place.name)
        modes.push({ path: splitPath(place.path), mode: permissionsOf(entry.stats) })
      } else if (entry.stats.isSymbolicLink()) {
        copyLink(entry.parent, entry.name, place.parent, place.name, options)
        written = sum(written, { bytes: diskBytes(lstatAt(place.parent, place.name)), entries: 1 })
      } else if (entry.stats.isFile()) {
        copies.start(copyFile(entry, splitPath(place.path)))
      }
      if (copies.isFull()) await copies.room()
    }
  } finally {
    await copies.ended()
  }
  copies.check()
  for (const { path, mode } of modes.reverse()) {
    const bytes = await finishDirectory(target, path, mode, options)
    written = sum(written, { bytes, entries: 1 })
  }
  if (options.isSynced) {
    using top = target.openDirectory([])
    await fsyncDirectory(top)
  }
  return written
}

function openUnlessGone({ parent, name }: WalkEntry): OpenFile | undefined {
  try {
    return openFileAt(parent, name)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

/** Returns the disk space that the copy takes. */
async function cloneSynced(source: OpenFile, folder: Directory, name: string, options: CopyOptions): Promise<number> {
  const bytes = await cloneFile(source, folder, name, options)
  // The kernel's copy has the mode of its original, setuid included.
  const hasMoreThanPermissions = permissionsOf(source.stats) !== (Number(source.stats.mode) & 0o7777)
  if (!options.isSynced && !options.owner && !hasMoreThanPermissions) return bytes
  using made = openFileAt(folder, name)
  giveTo(options.owner, made.fd)
  if (hasMoreThanPermissions) fchmodSync(made.fd, permissionsOf(source.stats))
  if (options.isSynced) await fsyncFile(made)
  return bytes
}

function copyLink(from: Directory, name: string, to: Directory, toName: string, { owner }: CopyOptions): void {
  symlinkSync(nameToDisk(readlinkAt(from, name)), addressOf(to, toName))
  giveTo(owner, addressOf(to, toName))
}

/** Once everything is in it. Answers the disk space that it takes itself. */
async function finishDirectory(target: Sandbox, path: Segments, mode: number, options: CopyOptions): Promise<number> {
  using directory = target.openDirectory(path)
  giveTo(options.owner, directory.fd)
  fchmodSync(directory.fd, mode)
  if (options.isSynced) await fsyncDirectory(directory)
  return diskBytes(fstatSync(directory.fd, { bigint: true }))
}
