// Verifies one backup: its manifest, every block it needs, and the tables and indexes by which they are found. On request
// what the off-site copy has of it as well.
import { StoreUnreachable } from '../../../blobs/layered.ts'
import type { DamageReport, VerifyReport } from '../../../contract/agent/agent-backups.ts'
import { fail } from '../../../contract/errors.ts'
import { wholeIn } from '../blocks/prior-blocks.ts'
import { visitNeeded } from '../format/block-runs.ts'
import type { Entry } from '../format/entries.ts'
import { ID_BYTES } from '../format/format.ts'
import { openManifest } from '../format/manifest.ts'
import { inDoubt, settleDoubts } from '../store/healing.ts'
import { withManifest } from '../store/healing-blobs.ts'
import { type ManifestName, partsOf } from '../store/manifests.ts'
import type { Repository } from '../store/repository.ts'
import { checkCopy, expectAll, type Wanted, wantFrame } from './check-copy.ts'
import {
  checkAndHeal,
  checkIndexes,
  checkOwnChunks,
  checkParts,
  createFindings,
  describe,
  everyBlobFirst,
  type Findings,
  noting,
  storeAsItIs,
} from './checks.ts'

export async function runVerify(
  repository: Repository,
  name: ManifestName,
  { isOffsite = false }: { isOffsite?: boolean | undefined },
  signal: AbortSignal,
  report: (bytesDone: number) => void,
): Promise<VerifyReport> {
  if (isOffsite && !repository.offsite) throw fail('offsite_unreachable', 'No off-site store is configured.')
  await settleDoubts(repository, signal).catch(ifOutOfReach)
  using _shared = await repository.writing.share(signal)
  using fetch = repository.fetches.begin()
  const findings = createFindings()
  const wanted: Wanted = new Map()
  let parts: string[] = []
  const isRead = await noting(findings, () =>
    withManifest(repository, name, async () => {
      wanted.clear()
      const manifest = await openManifest(repository.blobs, repository.sealer, name)
      parts = partsOf(manifest)
      for await (const chunk of manifest.chunks()) for (const entry of chunk) want(repository, entry, wanted, findings)
    }),
  )
  if (!isRead) await checkOwnChunks(repository, findings, name)
  await checkParts(repository, findings, parts)
  const store = storeAsItIs(repository, fetch)
  expectAll(fetch, wanted, (packId) => repository.isAway(packId))
  for (const [packId, frames] of wanted) {
    signal.throwIfAborted()
    await checkAndHeal(repository, store, packId, (frame) => frames.has(frame.offset), findings)
    report(findings.bytesChecked)
  }
  await checkIndexes(repository, findings)
  for (const blob of findings.healed) repository.onHealed({ blob, serverId: name.serverId })
  const said = await describe(repository, findings)
  if (!isOffsite || !repository.offsite) return said
  const inCopy = await checkCopy({
    ...{ repository, offsite: repository.offsite, name, parts, wanted, fetch, signal },
    report: (bytesDone) => report(findings.bytesChecked + bytesDone),
  })
  // Before anybody is told: what mirrors the store replaces them.
  await repository.copyDamage.add(blobsOf(inCopy))
  const { damage } = await describe(repository, inCopy)
  // What is here of a part may be sound: then it touches the backup there alone.
  const touches = (one: DamageReport) =>
    one.blob.startsWith('parts/') && one.touches.length === 0 ? [{ ...name, path: '/' }] : one.touches
  const offsite = damage.map((one) => ({ ...one, touches: touches(one), isOffsite: true }))
  return {
    blocksChecked: said.blocksChecked + inCopy.blocksChecked,
    bytesChecked: said.bytesChecked + inCopy.bytesChecked,
    damage: everyBlobFirst([...said.damage, ...offsite]),
    healed: said.healed,
  }
}

function ifOutOfReach(error: unknown): void {
  if (!(error instanceof StoreUnreachable)) throw error
}

const blobsOf = ({ blocks, blobs }: Findings) => [
  ...new Set([...blobs.keys(), ...blocks.values().map(({ blob }) => blob)]),
]

function want({ index, doubtful }: Repository, entry: Entry, wanted: Wanted, findings: Findings): void {
  const wantBlock = (idAt: number) => {
    const block = index.findAny(entry.content, idAt)
    if (block < 0) {
      // It may be in a pack that only the copy has.
      if (doubtful.size > 0) throw inDoubt()
      const id = Buffer.from(entry.content.subarray(idAt, idAt + ID_BYTES)).toString('hex')
      findings.blocks.set(id, { blob: 'packs', what: 'the block is in no pack' })
      return
    }
    wantFrame(index, block, wanted)
  }
  visitNeeded(entry.content, wantBlock, wholeIn(index, entry.content))
}
