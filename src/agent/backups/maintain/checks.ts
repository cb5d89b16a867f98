// Checks every byte of what the store contains. Damage is healed from the off-site copy where it can be, and otherwise
// reported with every file and backup it affects.
import { crc32 } from 'node:zlib'
import { BlobMissing, type BlobStore, isLost } from '../../../blobs/store.ts'
import type { DamageReport, VerifyReport } from '../../../contract/agent/agent-backups.ts'
import { isFailure } from '../../../contract/errors.ts'
import { forEachAtOnce } from '../../../kit/waiting/work-group.ts'
import { wholeIn } from '../blocks/prior-blocks.ts'
import { visitNeeded } from '../format/block-runs.ts'
import { Damage, ID_BYTES, lastSegment, packBlob } from '../format/format.ts'
import { decodeTable, type Frame } from '../format/pack-table.ts'
import { checkPart } from '../format/parts.ts'
import { faultOfUnnamed, isUnnamed } from '../format/unnamed.ts'
import { isKnownDamaged } from '../store/damage-list.ts'
import { decodeCopy } from '../store/decode-pack.ts'
import { healPack } from '../store/healing.ts'
import { healIndex, healPart, withManifest } from '../store/healing-blobs.ts'
import { listedPacks } from '../store/index-blobs.ts'
import { type ManifestName, manifestNames, openIfThere, unlessGone } from '../store/manifests.ts'
import type { PackFetch } from '../store/pack-fetch.ts'
import { type ReadPack, readPackTable } from '../store/packs.ts'
import type { Repository } from '../store/repository.ts'
import { decodeJobs, NOT_WRITTEN } from '../workers/decode-jobs.ts'
import type { Pool } from '../workers/pool.ts'
import type { DecodeResult } from '../workers/worker-jobs.ts'

const TOUCHED_AT_MOST = 1000
/** Off-site each is a request. */
const UNNAMED_AT_ONCE = 8
const CHECKED_ONLY = { idAt: 0, ...NOT_WRITTEN }

export interface Findings {
  blocks: Map<string, { blob: string; what: string }>
  blobs: Map<string, string>
  /** Blobs that were damaged and are sound again. */
  healed: string[]
  blocksChecked: number
  bytesChecked: number
}

export const createFindings = (): Findings => ({
  blocks: new Map(),
  blobs: new Map(),
  healed: [],
  blocksChecked: 0,
  bytesChecked: 0,
})

export function addFindings(to: Findings, from: Findings): void {
  for (const [id, where] of from.blocks) to.blocks.set(id, where)
  for (const [blob, what] of from.blobs) to.blobs.set(blob, what)
  to.healed.push(...from.healed)
  to.blocksChecked += from.blocksChecked
  to.bytesChecked += from.bytesChecked
}

/** Where what is checked is read from. */
export interface CheckedStore {
  blobs: BlobStore
  decode(job: Parameters<Pool['decode']>[0]): Promise<DecodeResult>
  /** A block that was found damaged and stored anew elsewhere is no damage any more. */
  isReadFrom(id: Uint8Array, packId: string): boolean
}

/** The store as it is: each pack from the disk, or from the copy where it is only there. */
export function storeAsItIs(repository: Repository, fetch: PackFetch): CheckedStore {
  const { blobs, pool } = repository
  const decode: CheckedStore['decode'] = (job) =>
    repository.isAway(job.packId) ? decodeCopy({ pool, fetch }, job) : pool.decode(job)
  const isReadFrom: CheckedStore['isReadFrom'] = (id, packId) => {
    const block = repository.index.findAny(id)
    return block < 0 || repository.index.place(block).packId === packId
  }
  return { blobs, decode, isReadFrom }
}

/** Answers whether all that was wanted is what was written; damage of blocks that are read from elsewhere is no finding. */
export async function checkPack(
  repository: Repository,
  store: CheckedStore,
  packId: string,
  isWanted: (frame: Frame) => boolean,
  findings: Findings,
): Promise<boolean> {
  let frames: Frame[] = []
  let before: ReadPack['before'] | undefined
  await noting(findings, async () => {
    const pack = await asDamage(packBlob(packId), () => readPackTable(store.blobs, packId))
    const note = repository.index.packNotes.get(packId)
    if (note && note.tableCrc !== crc32(pack.table)) throw new Damage(packBlob(packId), 'is another pack')
    frames = decodeTable(pack.table)
    before = pack.before
  })
  if (findings.blobs.has(packBlob(packId))) frames = await framesByIndex(repository, packId)
  const wanted = frames
    .filter(isWanted)
    .flatMap((frame) => frame.blocks.map(({ id, ...place }) => ({ frame, ...place, ids: id, ...CHECKED_ONLY })))
  const jobs = [...decodeJobs(packId, wanted, { isStrict: true })].map((job) => store.decode(job))
  // All of them end before anything is said, also where one fails.
  await Promise.allSettled(jobs)
  let isSound = true
  for (const { damaged, bytes } of await Promise.all(jobs)) {
    findings.bytesChecked += bytes
    if (damaged.length > 0) isSound = false
    for (const { what, blocks } of damaged)
      for (const id of blocks)
        if (store.isReadFrom(id, packId))
          findings.blocks.set(Buffer.from(id).toString('hex'), { blob: packBlob(packId), what })
  }
  findings.blocksChecked += wanted.length
  await noting(findings, () => checkUnnamed(store, packId, frames, before))
  return isSound && !findings.blobs.has(packBlob(packId))
}

/** As `checkPack`, of the store as it is. Damage is written down, and healed where the copy has what was written. */
export async function checkAndHeal(
  repository: Repository,
  store: CheckedStore,
  packId: string,
  isWanted: (frame: Frame) => boolean,
  findings: Findings,
): Promise<boolean> {
  const found = createFindings()
  const isSound = await checkPack(repository, store, packId, isWanted, found)
  if (repository.isAway(packId)) for (const where of found.blocks.values()) where.what += ', in the off-site store'
  await remember(repository, found)
  const isDamaged = found.blocks.size + found.blobs.size > 0
  const outcome = isDamaged ? await healPack(repository, packId) : 'lost'
  if (outcome !== 'lost') {
    found.blocks.clear()
    found.blobs.clear()
  }
  if (outcome === 'healed') found.healed.push(packBlob(packId))
  addFindings(findings, found)
  return isSound
}

/** Where healing it was cut short just before that was written down. All of the pack was found to be sound. */
export async function forgetDamage(repository: Repository, packId: string): Promise<void> {
  if (await isKnownDamaged(repository.blobs, packId)) await repository.recordHealed(packId)
}

/** They hold no block, and still no byte of a pack may change unseen. */
async function checkUnnamed(
  { blobs }: CheckedStore,
  packId: string,
  frames: Frame[],
  before: ReadPack['before'] | undefined,
): Promise<void> {
  const name = packBlob(packId)
  const read = async (offset: number, length: number) => {
    const at = before ? offset - before.offset : -1
    if (before && at >= 0 && at + length <= before.bytes.length) return before.bytes.subarray(at, at + length)
    return await asDamage(name, () => blobs.get(name, { offset, length }))
  }
  await forEachAtOnce(frames.filter(isUnnamed), UNNAMED_AT_ONCE, async (frame) => {
    const fault = faultOfUnnamed(packId, frame, await read(frame.offset, frame.storedLength))
    if (fault !== undefined) throw new Damage(name, fault)
  })
}

/** A pack that is gone, or that the disk no longer gives, is one that is damaged. */
export async function asDamage<T>(blob: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (!isLost(error)) throw error
    throw new Damage(blob, error instanceof BlobMissing ? 'is not there' : 'cannot be read')
  }
}

/** The copy of a pack's table that an index has. */
async function framesByIndex({ blobs, sealer }: Repository, packId: string): Promise<Frame[]> {
  for await (const pack of listedPacks(blobs, sealer, () => {}))
    if (pack.packId === packId) return decodeTable(pack.table)
  return []
}

export async function checkIndexes(repository: Repository, findings: Findings): Promise<void> {
  const damaged: Damage[] = []
  for await (const _ of listedPacks(repository.blobs, repository.sealer, (damage) => void damaged.push(damage)));
  for (const { blob, message } of damaged) {
    if (await healIndex(repository, blob)) findings.healed.push(blob)
    else findings.blobs.set(blob, message)
  }
}

/** `seen`: what was checked of others already, and is not checked again. */
export async function checkManifest(
  repository: Repository,
  findings: Findings,
  name: ManifestName,
  seen: Set<string>,
): Promise<void> {
  const read = () =>
    unlessGone(async () => {
      for await (const _ of (await openIfThere(repository, name))?.rawChunks(seen) ?? []);
    })
  const healed = (blob: string) => void findings.healed.push(blob)
  const isRead = await noting(findings, () => withManifest(repository, name, read, healed))
  if (!isRead) await checkOwnChunks(repository, findings, name)
}

/** All of each, also what no manifest needs any more: no byte of the store changes unseen. */
export async function checkParts(repository: Repository, findings: Findings, names: Iterable<string>): Promise<void> {
  const { blobs, sealer } = repository
  for (const name of names) {
    const found = createFindings()
    await noting(found, () => asDamage(name, () => checkPart(blobs, sealer, name)))
    if (found.blobs.size > 0 && (await healPart(repository, name))) {
      found.blobs.clear()
      found.healed.push(name)
      findings.blobs.delete(name)
    }
    addFindings(findings, found)
  }
}

/** Answers whether all could be read. */
export async function noting(findings: Findings, read: () => Promise<unknown>): Promise<boolean> {
  try {
    await read()
    return true
  } catch (error) {
    if (!(error instanceof Damage)) throw error
    findings.blobs.set(error.blob, error.message)
    return false
  }
}

/** For a manifest that could not be read to its end: the damage may be that of a part, and the manifest have its own. */
export async function checkOwnChunks(repository: Repository, findings: Findings, name: ManifestName): Promise<void> {
  const read = () => unlessGone(async () => (await openIfThere(repository, name))?.checkOwn())
  await noting(findings, () => withManifest(repository, name, read, (blob) => void findings.healed.push(blob)))
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
  const { blocksChecked, bytesChecked, healed } = findings
  const reports = new Map<string, DamageReport>()
  for (const [blockId, { blob, what }] of findings.blocks) reports.set(blockId, { blockId, blob, what, touches: [] })
  if (reports.size > 0) await findTouched(repository, reports)
  const damage = [...reports.values()]
  for (const [blob, what] of findings.blobs)
    damage.push({ blockId: null, blob, what, touches: await touchedBy(repository, blob) })
  return { blocksChecked, bytesChecked, damage: everyBlobFirst(damage), healed }
}

/** What keeps the report keeps only so much of it, and one byte may spoil a thousand blocks: each blob is named before. */
export function everyBlobFirst(damage: DamageReport[]): DamageReport[] {
  const named = new Set<string>()
  const [firsts, others]: [DamageReport[], DamageReport[]] = [[], []]
  for (const one of damage) {
    const key = `${one.isOffsite ?? false} ${one.blob}`
    if (named.has(key)) others.push(one)
    else firsts.push(one)
    named.add(key)
  }
  return [...firsts, ...others]
}

/** Backups that cannot be read as a whole because the blob is damaged. */
async function touchedBy(repository: Repository, blob: string): Promise<DamageReport['touches']> {
  const [folder, serverId, backupId] = blob.split('/')
  if (serverId === undefined || backupId === undefined) return []
  if (folder === 'manifests') return [{ serverId, backupId, path: '/' }]
  if (folder !== 'parts') return []
  const touched: DamageReport['touches'] = []
  for (const name of await manifestNames(repository, serverId)) {
    const findings = createFindings()
    await noting(findings, () =>
      unlessGone(async () => {
        const manifest = await openIfThere(repository, name)
        const isNamed = manifest?.parts.some(({ id }) => id === lastSegment(blob))
        if (manifest && isNamed) for await (const _ of manifest.rawChunks());
      }),
    )
    if (findings.blobs.has(blob)) touched.push({ ...name, path: '/' })
  }
  return touched
}

async function findTouched(repository: Repository, reports: Map<string, DamageReport>): Promise<void> {
  for (const name of await manifestNames(repository)) {
    try {
      const manifest = await openIfThere(repository, name)
      for await (const chunk of manifest?.chunks() ?? []) {
        for (const entry of chunk) {
          const { content } = entry
          const touch = (idAt: number) => {
            const id = Buffer.from(content.subarray(idAt, idAt + ID_BYTES)).toString('hex')
            const touches = reports.get(id)?.touches
            if (touches && touches.length < TOUCHED_AT_MOST) touches.push({ ...name, path: entry.path })
          }
          visitNeeded(content, touch, wholeIn(repository.index, content))
        }
      }
    } catch (error) {
      // A manifest that cannot be read is a finding of its own when its turn comes; one that was deleted meanwhile is none.
      if (!(error instanceof Damage) && !isFailure(error, 'not_found')) throw error
    }
  }
}
