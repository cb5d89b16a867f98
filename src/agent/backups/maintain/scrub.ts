// Verifies the whole store, a share at a time, and remembers its position. It releases the store's lock after every
// piece: otherwise a waiting exclusive holder would block every new backup until the scrub is done. Of packs that are only
// in the off-site copy it looks whether they are there: to read them all again and again costs what providers charge.
import { StoreUnreachable } from '../../../blobs/layered.ts'
import { BlobMissing } from '../../../blobs/store.ts'
import type { ScrubReport } from '../../../contract/agent/agent-backups.ts'
import { lastSegment, SCRUB_BLOB } from '../format/format.ts'
import { settleDoubts } from '../store/healing.ts'
import { manifestNames, partNames } from '../store/manifests.ts'
import type { Repository } from '../store/repository.ts'
import {
  checkAndHeal,
  checkIndexes,
  checkManifest,
  checkParts,
  createFindings,
  describe,
  forgetDamage,
  storeAsItIs,
} from './checks.ts'

/** `share` of the store's bytes, 1 for all of it. Manifests and indexes are small and are read every time. */
export async function runScrub(
  repository: Repository,
  options: { share: number },
  signal: AbortSignal,
  report: (bytesDone: number, bytesTotal: number) => void,
): Promise<ScrubReport> {
  const findings = createFindings()
  await settleDoubts(repository, signal).catch(ifOutOfReach)
  using fetch = repository.fetches.begin()
  const store = storeAsItIs(repository, fetch)
  const shared = async (work: () => Promise<void>) => {
    using _shared = await repository.writing.share(signal)
    await work()
  }
  await shared(() => checkIndexes(repository, findings))
  const seen = new Set<string>()
  for (const name of await manifestNames(repository))
    await shared(() => checkManifest(repository, findings, name, seen))
  await shared(async () => checkParts(repository, findings, await partNames(repository)))
  for (const packId of await missingInCopy(repository).catch(ifOutOfReach))
    await shared(async () => void (await checkAndHeal(repository, store, packId, () => true, findings)))
  const isHere = ([packId]: [string, number]) => !repository.isAway(packId)
  const packs = [...repository.packs].filter(isHere).sort(([a], [b]) => (a < b ? -1 : 1))
  const budget = packs.reduce((sum, [, size]) => sum + size, 0) * options.share
  const after = options.share >= 1 ? '' : await readCursor(repository)
  let spent = 0
  let isRoundDone = true
  for (const [packId, sizeBytes] of packs) {
    if (packId <= after) continue
    if (spent >= budget) {
      isRoundDone = false
      break
    }
    signal.throwIfAborted()
    await shared(async () => {
      // A reclaim may have taken it away by now, or it has left for the copy.
      if (!repository.packs.has(packId) || repository.isAway(packId)) return
      const isSound = await checkAndHeal(repository, store, packId, () => true, findings)
      if (isSound) await forgetDamage(repository, packId)
    })
    spent += sizeBytes
    await writeCursor(repository, packId)
    report(spent, budget)
  }
  if (isRoundDone) await writeCursor(repository, '')
  using _shared = await repository.writing.share(signal)
  return { ...(await describe(repository, findings)), isRoundDone }
}

/** Of the packs that are only in the copy, those that it does not list, or not as long as they were. */
async function missingInCopy({ blobs, offsite, packs }: Repository): Promise<string[]> {
  const away = new Map(blobs.away())
  if (!offsite || away.size === 0) return []
  for await (const { name, sizeBytes } of offsite.list('packs/')) if (away.get(name) === sizeBytes) away.delete(name)
  return [...away.keys()].map(lastSegment).filter((packId) => packs.has(packId))
}

/** What cannot be asked is asked another day. */
function ifOutOfReach(error: unknown): never[] {
  if (!(error instanceof StoreUnreachable)) throw error
  return []
}

/** A lost cursor only begins the round again. */
async function readCursor({ blobs }: Repository): Promise<string> {
  try {
    return String(JSON.parse(Buffer.from(await blobs.get(SCRUB_BLOB)).toString()).after)
  } catch (error) {
    if (error instanceof BlobMissing || error instanceof SyntaxError) return ''
    throw error
  }
}

function writeCursor({ blobs }: Repository, after: string): Promise<void> {
  return blobs.put(SCRUB_BLOB, Buffer.from(JSON.stringify({ after })))
}
