// Puts packs that the disk has lost or spoilt in place again, from the off-site copy. Everything is checked before it is put in
// place, in one step, and only then forgotten as damage: cut short anywhere, it is done again or was not needed.
import { StoreUnreachable } from '../../../blobs/layered.ts'
import { type BlobStore, isLost } from '../../../blobs/store.ts'
import { Damage, packBlob } from '../format/format.ts'
import type { FetchedRange } from '../workers/worker-jobs.ts'
import { isKnownDamaged } from './damage-list.ts'
import { unlessOutOfReach } from './healing-blobs.ts'
import { createIndexWriter, listedPacks } from './index-blobs.ts'
import { readPackTable, type WrittenPack } from './packs.ts'
import type { Repository } from './repository.ts'
import { isSoundPack } from './sound-blobs.ts'

const PIECE_BYTES = 4 * 1024 * 1024

/** `sound`: somebody else has healed it since it was found. */
type HealOutcome = 'healed' | 'sound' | 'lost'

/**
 * The whole pack from the copy, onto the disk, where it is known to be damaged. `lost` where the copy does not have it, or not
 * as it was written, or cannot be reached. Whoever calls it shares `writing`: no reclaim takes the pack away meanwhile.
 */
export function healPack(repository: Repository, packId: string): Promise<HealOutcome> {
  return repository.healing(async () => {
    const sizeBytes = repository.packs.get(packId)
    if (!repository.offsite || sizeBytes === undefined || repository.isAway(packId)) return 'lost'
    if (!(await isKnownDamaged(repository.blobs, packId))) return 'sound'
    const isHealed = await unlessOutOfReach(async () => {
      using fetch = repository.fetches.begin()
      return await fetch.read(packId, [{ offset: 0, length: sizeBytes, uses: 1 }], async ([whole]) => {
        if (whole?.length !== sizeBytes || !(await isSoundPack(repository, packId, whole))) return false
        await putInPlace(repository.blobs.local, packBlob(packId), whole)
        return true
      })
    })
    if (!isHealed) return 'lost'
    await repository.recordHealed(packId)
    return 'healed'
  })
}

/** In the background, for whoever has read what it needed from the copy. `serverId`: whose work has met the damage. */
export function healLater(repository: Repository, packId: string, serverId: string | null): void {
  const { toHeal } = repository
  if (toHeal.has(packId)) return
  toHeal.add(packId)
  const heal = async () => {
    using _shared = await repository.writing.share()
    // From here on it is damage of another time: what is written down after this one has ended needs one of its own.
    toHeal.delete(packId)
    const outcome = await healPack(repository, packId)
    if (outcome === 'healed') repository.onHealed({ blob: packBlob(packId), serverId })
  }
  // Only the time for it is lost: it is tried again when the damage is met again, and at the next start.
  heal().catch(() => {})
}

async function putInPlace(local: BlobStore, name: string, { bytes, at, length }: FetchedRange): Promise<void> {
  const writer = await local.create(name)
  try {
    for (let done = 0; done < length; done += PIECE_BYTES)
      await writer.write(Buffer.from(bytes, at + done, Math.min(PIECE_BYTES, length - done)))
  } catch (error) {
    await writer.abort()
    throw error
  }
  await writer.commit()
}

/**
 * Asks the copy for packs of which only an index or a note is left. Those that it has are noted, and read from there: a
 * disk that has lost its packs has its backups. Whoever calls it does not hold `writing`. Throws `StoreUnreachable`.
 */
export async function settleDoubts(repository: Repository, signal?: AbortSignal): Promise<void> {
  const { offsite, blobs, sealer, doubtful } = repository
  if (doubtful.size === 0 || !offsite) return
  using _shared = await repository.writing.share(signal)
  const sizes = await sizesIn(offsite, [...doubtful])
  for await (const pack of listedPacks(blobs, sealer, () => {}))
    if (doubtful.has(pack.packId)) await adoptIfThere(repository, sizes, pack.packId, async () => pack)
  const indexes = createIndexWriter(blobs, sealer)
  for (const packId of [...doubtful])
    await adoptIfThere(repository, sizes, packId, async () => {
      const pack = await readPackTable(offsite, packId)
      await indexes.add(pack)
      return pack
    })
  await indexes.finish()
}

/** A list has a thousand names in one request. */
const ASKED_ONE_BY_ONE = 20

/** Of those of the packs that the copy has. */
async function sizesIn(offsite: BlobStore, packIds: string[]): Promise<Map<string, number>> {
  const sizes = new Map<string, number>()
  if (packIds.length > ASKED_ONE_BY_ONE)
    for await (const { name, sizeBytes } of offsite.list('packs/')) sizes.set(name, sizeBytes)
  else
    for (const name of packIds.map(packBlob)) {
      try {
        sizes.set(name, (await offsite.stat(name)).sizeBytes)
      } catch (error) {
        if (!isLost(error)) throw error
      }
    }
  return sizes
}

async function adoptIfThere(
  repository: Repository,
  sizes: ReadonlyMap<string, number>,
  packId: string,
  read: () => Promise<WrittenPack>,
): Promise<void> {
  const name = packBlob(packId)
  const sizeBytes = sizes.get(name)
  const pack = sizeBytes === undefined ? undefined : await read().catch(ifDamaged)
  if (sizeBytes !== undefined && pack?.sizeBytes === sizeBytes) {
    await repository.blobs.note(name, sizeBytes)
    await repository.adopt(pack)
    return
  }
  repository.gone.add(packId)
  repository.doubtful.delete(packId)
}

function ifDamaged(error: unknown): undefined {
  if (!isLost(error) && !(error instanceof Damage)) throw error
}

/** A block that no known pack has may be in one of those in doubt, of which the copy could not be asked. */
export const inDoubt = () => new StoreUnreachable(new Error('packs that are not on the disk could not be looked for'))
