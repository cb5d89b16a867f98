// How work on a backup begins: its manifest is opened, and healed from the off-site store where it is damaged or lost.
import { StoreUnreachable } from '../../../blobs/layered.ts'
import { BlobMissing } from '../../../blobs/store.ts'
import type { StoredBackup } from '../../../contract/agent/agent-backups.ts'
import { fail } from '../../../contract/errors.ts'
import { explainDisk } from '../../files/sandbox/errors.ts'
import { Damage, manifestBlob } from '../format/format.ts'
import { type Manifest, openManifest } from '../format/manifest.ts'
import { readDamage } from './damage-list.ts'
import { healLater, settleDoubts } from './healing.ts'
import { healManifest, withManifest } from './healing-blobs.ts'
import { listManifests, type ManifestName } from './manifests.ts'
import type { Repository } from './repository.ts'

export interface BackupReading {
  /** As it is: nobody is asked for one that is not there. */
  manifestOf(serverId: string, backupId: string): Promise<Manifest>
  /** `work` may be repeated, with a manifest that is sound. */
  reading<T>(
    serverId: string,
    backupId: string,
    work: (manifest: Manifest, opened: Repository) => Promise<T>,
  ): Promise<T>
  /** For what reads all of a backup: by then nothing of its manifest is damaged, and packs in doubt were asked for. */
  readingAll<T>(serverId: string, backupId: string, work: () => Promise<T>): Promise<T>
  /** As `AgentBackups.heal`. */
  healed(name: ManifestName): Promise<StoredBackup | null>
}

export function createBackupReading(repository: () => Promise<Repository>): BackupReading {
  const reading: BackupReading['reading'] = async (serverId, backupId, work) => {
    const opened = await repository()
    const name = { serverId, backupId }
    return await explained(() =>
      withManifest(opened, name, async () => work(await openManifest(opened.blobs, opened.sealer, name), opened)),
    )
  }
  return {
    async manifestOf(serverId, backupId) {
      const { blobs, sealer } = await repository()
      return await explained(() => openManifest(blobs, sealer, { serverId, backupId }))
    },
    reading,
    async readingAll(serverId, backupId, work) {
      await reading(serverId, backupId, async (manifest, { offsite }) => {
        if (offsite) for await (const _ of manifest.rawChunks());
      })
      await askInDoubt(await repository())
      return await explained(work)
    },
    async healed(name) {
      const opened = await repository()
      const blob = manifestBlob(name.serverId, name.backupId)
      // Whether it cannot be reached, or does not have the backup, makes a difference here.
      await explained(async () => opened.offsite?.stat(blob)).catch(ifMissing)
      if (!(await healManifest(opened, name))) return null
      opened.onHealed({ blob, serverId: name.serverId })
      const listed = await listManifests(opened, { serverId: name.serverId })
      return listed.find(({ backupId }) => backupId === name.backupId) ?? null
    },
  }
}

function ifMissing(error: unknown): void {
  if (!(error instanceof BlobMissing)) throw error
}

/** Where nobody answers, whoever needs what is in doubt is told so. */
export async function askInDoubt(repository: Repository): Promise<void> {
  try {
    await settleDoubts(repository)
  } catch (error) {
    if (!(error instanceof StoreUnreachable)) throw error
  }
}

/** What was found damaged before, and could not be healed then. */
export async function healKnown(repository: Repository): Promise<void> {
  if (!repository.offsite) return
  await askInDoubt(repository)
  const { blocks, packs } = await readDamage(repository.blobs)
  for (const packId of new Set([...packs, ...blocks.map(([, where]) => where)])) healLater(repository, packId, null)
}

export async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Damage) throw fail('backup_damaged', 'The backup is damaged and cannot be read.', error)
    if (error instanceof StoreUnreachable) throw unreachable(error)
    throw explainDisk(error)
  }
}

export function unreachable(cause: StoreUnreachable) {
  return fail('offsite_unreachable', 'What is needed of the backup is off-site, and cannot be reached there.', cause)
}
