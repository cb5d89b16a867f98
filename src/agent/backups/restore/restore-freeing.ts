// After a restore, files and trash may exceed the quota. Trash is then freed, oldest first. An item that this restore
// displaced may be freed only if the safety backup holds the same content, and the store still has it: it may have been
// changed since, or left out by a `.backupignore`, and a block of it in the store may have rotted.
import { isLost } from '../../../blobs/store.ts'
import { isFailure } from '../../../contract/errors.ts'
import { openDescriptor } from '../../../kit/files/descriptor.ts'
import {
  addressOf,
  type Directory,
  openChild,
  openRoot,
  readlinkAt,
  statsIfThere,
} from '../../files/sandbox/directory.ts'
import { walk } from '../../files/sandbox/walk.ts'
import type { TrashedItem } from '../../files/trash/trash-freeing.ts'
import { readRecord, slotName } from '../../files/trash/trash-records.ts'
import type { RestoreHead } from '../../restore-state.ts'
import { Damage } from '../format/format.ts'
import { holdManifest, type Manifest } from '../format/manifest.ts'
import type { PackSource } from '../store/decode-pack.ts'
import { isSoundInStore } from '../store/sound-content.ts'
import { OPEN_FILE } from '../tree/unchanged.ts'
import { hasSameContent } from '../workers/same-content.ts'
import type { LiveEntry } from './restore-plan.ts'
import type { RestoreTarget } from './restore-target.ts'

export async function freeForQuota(target: RestoreTarget, head: RestoreHead): Promise<void> {
  const own = new Set(head.trashBatches)
  await using safety = await openSafety(target, head.safetyBackupId ?? null)
  const isCopied = async (item: TrashedItem) =>
    safety !== undefined && (await isInBackup(target, safety, item).catch(ifDamaged))
  await target.usage.shrink(async (item) => !own.has(item.batch) || (await isCopied(item)))
}

interface Safety extends AsyncDisposable {
  manifest: Manifest
  /** The store that it is in. */
  source: PackSource & { serverId: string }
}

function ifDamaged(error: unknown): false {
  if (error instanceof Damage || isLost(error)) return false
  throw error
}

async function openSafety(target: RestoreTarget, backupId: string | null): Promise<Safety | undefined> {
  if (backupId === null) return undefined
  const repository = await target.repository()
  const { blobs, sealer } = repository
  try {
    const manifest = await holdManifest(blobs, sealer, { serverId: target.serverId, backupId })
    const { serverId } = manifest.meta
    const fetch = repository.fetches.begin()
    return {
      manifest,
      source: { repository, pool: repository.pool.of(serverId), fetch, serverId },
      async [Symbol.asyncDispose]() {
        fetch[Symbol.dispose]()
        await manifest[Symbol.asyncDispose]()
      },
    }
  } catch (error) {
    // Somebody has deleted it meanwhile, or it cannot be read: then the trash is the only copy.
    if (isFailure(error, 'not_found') || error instanceof Damage || isLost(error)) return undefined
    throw error
  }
}

async function isInBackup(target: RestoreTarget, safety: Safety, { batch, index }: TrashedItem): Promise<boolean> {
  using trash = openRoot(target.folders.trash)
  using folder = openChild(trash, batch)
  const path = readRecord(folder)?.items[index]?.path
  const stats = statsIfThere(folder, slotName(index))
  if (path === undefined || !stats) return false
  const top = { parent: folder, name: slotName(index), path, stats }
  if (!(await isSame(safety, top))) return false
  if (!stats.isDirectory()) return true
  using directory = openChild(folder, slotName(index))
  return await holdsAll(target, safety, path, directory)
}

async function holdsAll(
  { sandbox }: RestoreTarget,
  safety: Safety,
  path: string,
  directory: Directory,
): Promise<boolean> {
  for await (const entry of walk(directory, sandbox.share, { sorted: true }))
    if (entry.isMountPoint || entry.isTooDeep || !(await isSame(safety, { ...entry, path: `${path}${entry.path}` })))
      return false
  return true
}

type Thing = Pick<LiveEntry, 'parent' | 'name' | 'path' | 'stats'>

async function isSame({ manifest, source }: Safety, { parent, name, path, stats }: Thing): Promise<boolean> {
  const entry = await manifest.find(path)
  if (entry?.kind === 'directory') return stats.isDirectory()
  if (entry?.kind === 'symlink') return stats.isSymbolicLink() && readlinkAt(parent, name) === entry.target
  if (entry?.kind !== 'file' || !stats.isFile() || Number(stats.size) !== entry.sizeBytes) return false
  using file = openDescriptor(addressOf(parent, name), OPEN_FILE)
  // The content by its names, and then whether the store has what they name.
  return (await file.use((fd) => hasSameContent(source.pool, fd, entry))) && (await isSoundInStore(source, entry))
}
