// Checks what the off-site copy has of a backup, as a store of its own. A pack that a reclaim has written here may not be
// there yet: what it is made of is, until it was sent, and that is checked then.
import type { BlobStore } from '../../../blobs/store.ts'
import { asBuffer } from '../../../kit/bytes.ts'
import { type BlockIndex, createBlockIndex } from '../blocks/block-index.ts'
import { wholeIn } from '../blocks/prior-blocks.ts'
import { visitNeeded } from '../format/block-runs.ts'
import { type Damage, lastSegment, manifestBlob } from '../format/format.ts'
import { openManifest } from '../format/manifest.ts'
import { checkPart } from '../format/parts.ts'
import { decodeCopy } from '../store/decode-pack.ts'
import { listedPacks } from '../store/index-blobs.ts'
import { type ManifestName, partsOf } from '../store/manifests.ts'
import type { PackFetch } from '../store/pack-fetch.ts'
import type { Repository } from '../store/repository.ts'
import { inMemory } from '../store/sound-blobs.ts'
import { addFindings, asDamage, type CheckedStore, checkPack, createFindings, type Findings, noting } from './checks.ts'

/** By pack: where the frames are that the backup needs, and how long each is. */
export type Wanted = Map<string, Map<number, number>>

/** What a run of the mirror removes while it is checked is looked for anew this often. */
const LOOKS = 3

export interface CopyCheck {
  repository: Repository
  offsite: BlobStore
  name: ManifestName
  /** Those that the manifest on the disk names. */
  parts: string[]
  /** Where the service would read the backup. */
  wanted: Wanted
  fetch: PackFetch
  signal: AbortSignal
  report(bytesDone: number): void
}

/** Packs that are only in the copy have been read from there already. */
export async function checkCopy(check: CopyCheck): Promise<Findings> {
  const { repository, offsite, wanted } = check
  const findings = createFindings()
  await checkManifestThere(check, findings)
  const packs: Wanted = new Map([...wanted].filter(([packId]) => !repository.isAway(packId)))
  const there = await packsIn(offsite)
  const [sent, unsent] = [new Map(packs), new Map(packs)]
  for (const packId of packs.keys()) (there.has(packId) ? unsent : sent).delete(packId)
  await checkPacks(check, sent, findings)
  if (unsent.size > 0) await checkUnsent(check, unsent, findings)
  const note = ({ blob: index, message }: Damage) => void findings.blobs.set(index, message)
  for await (const _ of listedPacks(offsite, repository.sealer, note));
  return findings
}

async function checkManifestThere({ repository, offsite, name, parts }: CopyCheck, findings: Findings): Promise<void> {
  const { sealer } = repository
  const blob = manifestBlob(name.serverId, name.backupId)
  const named = new Set(parts)
  await noting(findings, async () => {
    await asDamage(blob, () => offsite.stat(blob))
    const manifest = await openManifest(offsite, sealer, name)
    for (const part of partsOf(manifest)) named.add(part)
    await manifest.checkOwn()
  })
  // All of each, also what another part would stand in for: every one that is damaged is to be replaced.
  for (const part of named)
    await noting(findings, () =>
      asDamage(part, async () => checkPart(inMemory(asBuffer(await offsite.get(part))), sealer, part)),
    )
}

async function packsIn(offsite: BlobStore): Promise<Set<string>> {
  const there = new Set<string>()
  for await (const { name } of offsite.list('packs/')) there.add(lastSegment(name))
  return there
}

async function checkPacks(check: CopyCheck, packs: Wanted, findings: Findings): Promise<void> {
  const { repository, offsite, fetch, signal, report } = check
  const { pool } = repository
  const decode: CheckedStore['decode'] = (job) => decodeCopy({ pool, fetch }, job)
  // Whatever the disk would read instead: what is damaged there is to be replaced.
  const store: CheckedStore = { blobs: offsite, decode, isReadFrom: () => true }
  expectAll(fetch, packs, () => true)
  for (const [packId, frames] of packs) {
    signal.throwIfAborted()
    await checkPack(repository, store, packId, (frame) => frames.has(frame.offset), findings)
    report(findings.bytesChecked)
  }
}

/** Of packs that the copy lacks. Those of which it has a block nowhere else are missing. */
async function checkUnsent(check: CopyCheck, unsent: Wanted, findings: Findings): Promise<void> {
  const before = findings.bytesChecked
  const report = (bytesDone: number) => check.report(before + bytesDone)
  for (let look = 1; ; look++) {
    const { standIns, lost } = await findStandIns(check, unsent)
    const found = createFindings()
    await checkPacks({ ...check, report }, new Map([...standIns, ...lost]), found)
    // They are removed once those that they stand in for have been sent.
    const isSettled = found.blobs.size === 0 && found.blocks.size === 0
    if (!isSettled && look < LOOKS) continue
    return addFindings(findings, found)
  }
}

/** Where else the copy has what the backup needs of them. */
async function findStandIns(
  { repository, offsite, name }: CopyCheck,
  unsent: Wanted,
): Promise<{ standIns: Wanted; lost: Wanted }> {
  const { index, sealer, blobs } = repository
  const copy = await indexOf(offsite, sealer)
  const standIns: Wanted = new Map()
  const lost: Wanted = new Map()
  // Where it is damaged here, that was found before.
  await noting(createFindings(), async () => {
    for await (const chunk of (await openManifest(blobs, sealer, name)).chunks())
      for (const entry of chunk) {
        const find = (idAt: number) => {
          const here = index.findAny(entry.content, idAt)
          const packId = here < 0 ? '' : index.place(here).packId
          const frames = unsent.get(packId)
          if (!frames) return
          const there = copy.findAny(entry.content, idAt)
          if (there >= 0) wantFrame(copy, there, standIns)
          else lost.set(packId, frames)
        }
        visitNeeded(entry.content, find, wholeIn(index, entry.content))
      }
  })
  return { standIns, lost }
}

async function indexOf(offsite: BlobStore, sealer: Repository['sealer']): Promise<BlockIndex> {
  const index = createBlockIndex()
  const there = await packsIn(offsite)
  for await (const { packId, table } of listedPacks(offsite, sealer, () => {}))
    if (there.has(packId)) index.addPack(packId, table)
  return index
}

/** The frame that the block is in. */
export function wantFrame(index: BlockIndex, block: number, wanted: Wanted): void {
  const { packId, offset, storedLength } = index.framePlace(index.frameOf(block))
  const frames = wanted.get(packId) ?? new Map<number, number>()
  wanted.set(packId, frames.set(offset, storedLength))
}

export function expectAll(fetch: PackFetch, wanted: Wanted, isFetched: (packId: string) => boolean): void {
  for (const [packId, frames] of wanted)
    if (isFetched(packId)) for (const [offset, length] of frames) fetch.expect(packId, { offset, length, uses: 1 })
}
