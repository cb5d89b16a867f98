// Verifies the whole store, a share at a time, and remembers its position. It releases the store's lock after every
// piece: otherwise a waiting exclusive holder would block every new backup until the scrub is done.
import { BlobMissing } from '../../../blobs/store.ts'
import type { ScrubReport } from '../../../contract/agent/agent-backups.ts'
import { SCRUB_BLOB } from '../format/format.ts'
import { manifestNames } from '../store/manifests.ts'
import type { Repository } from '../store/repository.ts'
import { addFindings, checkIndexes, checkManifest, checkPack, createFindings, describe, remember } from './verify.ts'

/** `share` of the store's bytes, 1 for all of it. Manifests and indexes are small and are read every time. */
export async function runScrub(
  repository: Repository,
  options: { share: number },
  signal: AbortSignal,
  report: (bytesDone: number, bytesTotal: number) => void,
): Promise<ScrubReport> {
  const findings = createFindings()
  const shared = async (work: () => Promise<void>) => {
    using _shared = await repository.writing.share(signal)
    await work()
  }
  await shared(() => checkIndexes(repository, findings))
  for (const name of await manifestNames(repository)) await shared(() => checkManifest(repository, findings, name))
  const packs = [...repository.packs].sort(([a], [b]) => (a < b ? -1 : 1))
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
      // A reclaim may have taken it away by now.
      if (!repository.packs.has(packId)) return
      const found = createFindings()
      await checkPack(repository, packId, () => true, found)
      await remember(repository, found)
      addFindings(findings, found)
    })
    spent += sizeBytes
    await writeCursor(repository, packId)
    report(spent, budget)
  }
  if (isRoundDone) await writeCursor(repository, '')
  using _shared = await repository.writing.share(signal)
  return { ...(await describe(repository, findings)), isRoundDone }
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
