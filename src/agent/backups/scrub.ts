// Verifies the whole store, a share at a time, and remembers how far it came.

import { BlobMissing } from '../../blobs/store.ts'
import type { ScrubReport } from '../../contract/agent-backups.ts'
import { SCRUB_BLOB } from './format.ts'
import { manifestNames } from './manifests.ts'
import type { Repository } from './repository.ts'
import { checkIndexes, checkManifests, checkPack, conclude, createFindings } from './verify.ts'

/** `share` of the store's bytes, 1 for all of it. Manifests and indexes are small and are read every time. */
export async function runScrub(
  repository: Repository,
  options: { share: number },
  signal: AbortSignal,
  report: (bytesDone: number, bytesTotal: number) => void,
): Promise<ScrubReport> {
  using _shared = await repository.writing.share(signal)
  const findings = createFindings()
  await checkIndexes(repository, findings)
  await checkManifests(repository, findings, await manifestNames(repository))
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
    await checkPack(repository, packId, () => true, findings)
    spent += sizeBytes
    await writeCursor(repository, packId)
    report(spent, budget)
  }
  if (isRoundDone) await writeCursor(repository, '')
  return { ...(await conclude(repository, findings)), isRoundDone }
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
