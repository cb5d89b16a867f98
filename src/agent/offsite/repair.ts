// Blobs that a verification has found damaged in the mirror are replaced by those of the store. What cannot be replaced, since
// the place refuses to overwrite or the store has nothing better, is told, and keeps nothing else from being sent.
import type { DamagedBlob, MirrorReport } from '../../contract/agent/agent-offsite.ts'
import { toFailure } from '../../http/problem.ts'
import type { Repository } from '../backups/store/repository.ts'
import { confirmArrived } from './listing.ts'
import { type Blobs, folderOf, type Listing } from './mirror-plan.ts'
import { replaceBlob } from './replace-blob.ts'
import type { Wire } from './send-blob.ts'

export interface Repair {
  repository: Repository
  wire: Wire
  inventory: Blobs
  listing: Listing
  /** What this run has sent already: the mirror did not have it, or not in its size. */
  sent: ReadonlySet<string>
}

export async function repairMirror(repair: Repair): Promise<Pick<MirrorReport, 'repaired' | 'damaged'>> {
  const { repository, wire } = repair
  const repaired: string[] = []
  const damaged: DamagedBlob[] = []
  const forgotten: string[] = []
  for (const blob of await repository.copyDamage.list()) {
    const outcome = await repairBlob(repair, blob).catch((error: unknown) => {
      wire.signal.throwIfAborted()
      return { why: toFailure(error).detail }
    })
    if (outcome === 'repaired') repaired.push(blob)
    else if (outcome === 'needless') forgotten.push(blob)
    else damaged.push({ blob, why: outcome.why })
  }
  await repository.copyDamage.remove([...repaired, ...forgotten])
  return { repaired, damaged }
}

async function repairBlob(
  { repository, wire, inventory, listing, sent }: Repair,
  name: string,
): Promise<'repaired' | 'needless' | { why: string }> {
  if (sent.has(name)) return 'needless'
  if (listing.away.has(name)) return { why: 'It is the only copy.' }
  const folder = folderOf(name)
  if (!listing[folder]?.has(name)) return 'needless'
  const outcome = await replaceBlob(wire, repository, name)
  if (outcome === 'gone') return 'needless'
  if (outcome === 'unsound') return { why: 'It is damaged on the disk as well.' }
  await confirmArrived(wire.mirror, inventory, folder, [outcome])
  return 'repaired'
}
