// Whether the store still has the content of a file: every block of it is read, decoded and named anew. For whoever is
// about to remove another copy.
import { StoreUnreachable } from '../../../blobs/layered.ts'
import { wholeIn } from '../blocks/prior-blocks.ts'
import { piecesBetween } from '../format/block-runs.ts'
import type { Entry } from '../format/entries.ts'
import { decodeJobs, NOT_WRITTEN, type WantedBlock } from '../workers/decode-jobs.ts'
import type { DamagedBlock } from './damage-list.ts'
import { decodePart, type PackSource } from './decode-pack.ts'
import { healLater } from './healing.ts'

/** Of a file of any size, this many are in memory. */
const BLOCKS_AT_ONCE = 1024

type Source = PackSource & { serverId: string }

/** By pack. */
type Wanted = Map<string, WantedBlock[]>

/** False also where the off-site copy has to be asked and does not answer. Damage is recorded, and healed as for a restore. */
export async function isSoundInStore(source: Source, entry: Pick<Entry, 'content' | 'sizeBytes'>): Promise<boolean> {
  try {
    for (const wanted of wantedOf(source, entry)) if (!wanted || !(await areSound(source, wanted))) return false
    return true
  } catch (error) {
    if (error instanceof StoreUnreachable) return false
    throw error
  }
}

/** Undefined in place of a part of which a block is nowhere. */
function* wantedOf(
  { repository: { index } }: Source,
  { content: ids, sizeBytes }: Pick<Entry, 'content' | 'sizeBytes'>,
): Generator<Wanted | undefined, void, undefined> {
  let wanted: Wanted = new Map()
  let count = 0
  for (const { idAt, blockBytes } of piecesBetween({ content: ids, sizeBytes }, 0, sizeBytes, wholeIn(index, ids))) {
    if (idAt < 0) continue
    const found = index.findAny(ids, idAt)
    const place = found < 0 ? undefined : index.place(found)
    if (place?.length !== blockBytes) return yield undefined
    const { inner, length } = place
    const blocks = wanted.get(place.packId) ?? []
    wanted.set(place.packId, blocks)
    blocks.push({ frame: place, inner, length, ids, idAt, ...NOT_WRITTEN })
    if (++count < BLOCKS_AT_ONCE) continue
    yield wanted
    wanted = new Map()
    count = 0
  }
  yield wanted
}

async function areSound(source: Source, wanted: Wanted): Promise<boolean> {
  const { repository, serverId } = source
  const bad: DamagedBlock[] = []
  const spared: DamagedBlock[] = []
  const jobs: Promise<void>[] = []
  for (const [packId, blocks] of wanted)
    for (const part of decodeJobs(packId, blocks, { isStrict: true }))
      jobs.push(
        decodePart(source, part).then((decoded) => {
          for (const { blocks: ids } of decoded.damaged) bad.push(...ids.map((id) => ({ id, packId })))
          for (const { blocks: ids } of decoded.spared) spared.push(...ids.map((id) => ({ id, packId })))
        }),
      )
  const failed = (await Promise.allSettled(jobs)).find((result) => result.status === 'rejected')
  // What a reclaim has moved meanwhile is no damage; it is not looked for again, since nothing is lost by saying no.
  const damaged = [...bad, ...spared].filter(({ id, packId }) => {
    const found = repository.index.findAny(id)
    return found >= 0 && repository.index.place(found).packId === packId
  })
  if (damaged.length > 0) await repository.recordDamage(damaged)
  for (const { packId } of spared) healLater(repository, packId, serverId)
  if (failed) throw failed.reason
  return bad.length === 0
}
