// Reads what the store contains and checks every byte of it. Damage is reported with every file and backup it affects.
import { BlobMissing, isLost } from '../../../blobs/store.ts'
import type { DamageReport, VerifyReport } from '../../../contract/agent/agent-backups.ts'
import { isFailure } from '../../../contract/errors.ts'
import { eachBlock } from '../format/block-runs.ts'
import { Damage, ID_BYTES, lastSegment, packBlob } from '../format/format.ts'
import { openManifest } from '../format/manifest.ts'
import { decodeTable, type Frame } from '../format/pack-table.ts'
import { CODEC_FILLER } from '../format/seal.ts'
import { listedPacks } from '../store/index-blobs.ts'
import { type ManifestName, manifestNames, openIfThere, unlessGone } from '../store/manifests.ts'
import { readPackTable } from '../store/packs.ts'
import type { Repository } from '../store/repository.ts'
import { decodeJobs } from '../workers/decode-jobs.ts'

const TOUCHED_AT_MOST = 1000
const CHECKED_ONLY = { idAt: 0, target: null, offset: 0 }

interface Findings {
  blocks: Map<string, { blob: string; what: string }>
  blobs: Map<string, string>
  blocksChecked: number
  bytesChecked: number
}

export const createFindings = (): Findings => ({
  blocks: new Map(),
  blobs: new Map(),
  blocksChecked: 0,
  bytesChecked: 0,
})

export function addFindings(to: Findings, from: Findings): void {
  for (const [id, where] of from.blocks) to.blocks.set(id, where)
  for (const [blob, what] of from.blobs) to.blobs.set(blob, what)
  to.blocksChecked += from.blocksChecked
  to.bytesChecked += from.bytesChecked
}

/** One backup: its manifest, every block it needs, and the tables and indexes by which they are found. */
export async function runVerify(
  repository: Repository,
  name: ManifestName,
  signal: AbortSignal,
  report: (bytesDone: number) => void,
): Promise<VerifyReport> {
  using _shared = await repository.writing.share(signal)
  const findings = createFindings()
  const wanted = new Map<string, Set<number>>()
  await noting(findings, async () => {
    const manifest = await openManifest(repository.blobs, repository.sealer, name)
    for await (const chunk of manifest.chunks()) for (const entry of chunk) want(repository, entry, wanted, findings)
  })
  for (const [packId, offsets] of wanted) {
    signal.throwIfAborted()
    await checkPack(repository, packId, (frame) => offsets.has(frame.offset), findings)
    report(findings.bytesChecked)
  }
  await checkIndexes(repository, findings)
  await remember(repository, findings)
  return await describe(repository, findings)
}

function want(
  { index }: Repository,
  entry: Parameters<typeof eachBlock>[0],
  wanted: Map<string, Set<number>>,
  findings: Findings,
): void {
  eachBlock(entry, (idAt) => {
    if (idAt < 0) return
    const block = index.findAny(entry.content, idAt)
    if (block < 0) {
      const id = Buffer.from(entry.content.subarray(idAt, idAt + ID_BYTES)).toString('hex')
      findings.blocks.set(id, { blob: 'packs', what: 'the block is in no pack' })
      return
    }
    const { packId, offset } = index.framePlace(index.frameOf(block))
    const offsets = wanted.get(packId) ?? new Set()
    wanted.set(packId, offsets.add(offset))
  })
}

export async function checkPack(
  repository: Repository,
  packId: string,
  isWanted: (frame: Frame) => boolean,
  findings: Findings,
): Promise<void> {
  let frames: Frame[] = []
  await noting(findings, async () => {
    frames = decodeTable((await asDamage(packBlob(packId), () => readPackTable(repository.blobs, packId))).table)
  })
  if (findings.blobs.has(packBlob(packId))) frames = await framesByIndex(repository, packId)
  const wanted = frames
    .filter(isWanted)
    .flatMap((frame) => frame.blocks.map(({ id, ...place }) => ({ frame, ...place, ids: id, ...CHECKED_ONLY })))
  const jobs = [...decodeJobs(packId, wanted, { isStrict: true })].map((job) => repository.pool.decode(job))
  for (const { damaged, bytes } of await Promise.all(jobs)) {
    findings.bytesChecked += bytes
    for (const { what, blocks } of damaged)
      for (const id of blocks)
        if (isReadFrom(repository, id, packId))
          findings.blocks.set(Buffer.from(id).toString('hex'), { blob: packBlob(packId), what })
  }
  findings.blocksChecked += wanted.length
  await noting(findings, () => checkFillers(repository, packId, frames))
}

/** They hold no block, and still no byte of a pack may change unseen. */
async function checkFillers({ blobs }: Repository, packId: string, frames: Frame[]): Promise<void> {
  const name = packBlob(packId)
  for (const { offset, storedLength } of frames.filter(({ codec }) => codec === CODEC_FILLER)) {
    const stored = await asDamage(name, () => blobs.get(name, { offset, length: storedLength }))
    const isSound = stored.length === storedLength && stored.every((byte) => byte === 0)
    if (!isSound) throw new Damage(name, 'what should be zeros is not')
  }
}

/** A pack that is gone, or that the disk no longer gives, is one that is damaged. */
async function asDamage<T>(blob: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (!isLost(error)) throw error
    throw new Damage(blob, error instanceof BlobMissing ? 'is not there' : 'cannot be read')
  }
}

/** A block that was found damaged and stored anew elsewhere is no damage any more. */
function isReadFrom({ index }: Repository, id: Uint8Array, packId: string): boolean {
  const block = index.findAny(id)
  return block < 0 || index.place(block).packId === packId
}

/** The copy of a pack's table that an index has. */
async function framesByIndex({ blobs, sealer }: Repository, packId: string): Promise<Frame[]> {
  for await (const pack of listedPacks(blobs, sealer, () => {}))
    if (pack.packId === packId) return decodeTable(pack.table)
  return []
}

export async function checkIndexes({ blobs, sealer }: Repository, findings: Findings): Promise<void> {
  const note = (damage: Damage) => void findings.blobs.set(damage.blob, damage.message)
  for await (const _ of listedPacks(blobs, sealer, note));
}

export async function checkManifest(repository: Repository, findings: Findings, name: ManifestName): Promise<void> {
  await noting(findings, async () => {
    await unlessGone(async () => {
      for await (const _ of (await openIfThere(repository, name))?.rawChunks() ?? []);
    })
  })
}

async function noting(findings: Findings, read: () => Promise<unknown>): Promise<void> {
  try {
    await read()
  } catch (error) {
    if (!(error instanceof Damage)) throw error
    findings.blobs.set(error.blob, error.message)
  }
}

/** So that the next backup heals what it can. */
export async function remember(repository: Repository, findings: Findings): Promise<void> {
  const packs = [...findings.blobs.keys()].filter((name) => name.startsWith('packs/')).map(lastSegment)
  const blocks = [...findings.blocks].map(([id, { blob }]) => ({
    id: Buffer.from(id, 'hex'),
    packId: lastSegment(blob),
  }))
  if (blocks.length > 0 || packs.length > 0) await repository.recordDamage(blocks, packs)
}

/** Says what the damage touches. */
export async function describe(repository: Repository, findings: Findings): Promise<VerifyReport> {
  const { blocksChecked, bytesChecked } = findings
  const reports = new Map<string, DamageReport>()
  for (const [blockId, { blob, what }] of findings.blocks) reports.set(blockId, { blockId, blob, what, touches: [] })
  if (reports.size > 0) await findTouched(repository, reports)
  const damage = [...reports.values()]
  for (const [blob, what] of findings.blobs) {
    const [folder, serverId, backupId] = blob.split('/')
    const isManifest = folder === 'manifests' && serverId !== undefined && backupId !== undefined
    damage.push({ blockId: null, blob, what, touches: isManifest ? [{ serverId, backupId, path: '/' }] : [] })
  }
  return { blocksChecked, bytesChecked, damage }
}

async function findTouched(repository: Repository, reports: Map<string, DamageReport>): Promise<void> {
  for (const name of await manifestNames(repository)) {
    try {
      const manifest = await openIfThere(repository, name)
      for await (const chunk of manifest?.chunks() ?? []) {
        for (const entry of chunk) {
          eachBlock(entry, (idAt) => {
            const id = idAt < 0 ? '' : Buffer.from(entry.content.subarray(idAt, idAt + ID_BYTES)).toString('hex')
            const touches = reports.get(id)?.touches
            if (touches && touches.length < TOUCHED_AT_MOST) touches.push({ ...name, path: entry.path })
          })
        }
      }
    } catch (error) {
      // A manifest that cannot be read is a finding of its own when its turn comes; one that was deleted meanwhile is none.
      if (!(error instanceof Damage) && !isFailure(error, 'not_found')) throw error
    }
  }
}
