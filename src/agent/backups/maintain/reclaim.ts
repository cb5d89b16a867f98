// Frees the space of blocks that no backup needs, and of parts that no manifest names. Mark: every block of every manifest. Sweep: packs with nothing needed
// are deleted; packs with little needed have that copied to a new pack first. Runs exclusively, so no backup can start
// to rely on a block between the two. Packs that are only in the off-site copy are never fetched to be copied: of those only
// the notes of such as nobody needs go, and what mirrors the store takes them from the copy. Order: write new packs, then the new index, delete old indexes, then old packs;
// see docs/backup-format.md.
import type { ReclaimReport } from '../../../contract/agent/agent-backups.ts'
import { fail } from '../../../contract/errors.ts'
import { wholeIn } from '../blocks/prior-blocks.ts'
import { type PartRef, visitIds } from '../format/entries.ts'
import { DAMAGE_BLOB, Damage, packBlob, partBlob } from '../format/format.ts'
import { decodeTable, type Frame, tableOf } from '../format/pack-table.ts'
import { PATCHED } from '../format/patched.ts'
import { settleDoubts } from '../store/healing.ts'
import { withManifest } from '../store/healing-blobs.ts'
import { createIndexWriter, indexesFor, listedPacks } from '../store/index-blobs.ts'
import { type ManifestName, manifestNames, openIfThere, unlessGone } from '../store/manifests.ts'
import { createPack, type WrittenPack } from '../store/packs.ts'
import type { Repository } from '../store/repository.ts'

/** A pack with less than this share in use is copied: what it costs to copy is less than what comes back. */
const WORTH_KEEPING = 0.5
/** More than are needed: every backup adds one, and opening the store reads them all. */
const INDEXES_TOO_MANY = 16

export async function runReclaim(
  repository: Repository,
  options: { graceMs: number; now: number },
  signal: AbortSignal,
  report: (packsDone: number, packsTotal: number) => void,
): Promise<ReclaimReport> {
  await settleDoubts(repository, signal)
  using _exclusive = await repository.writing.exclusive(signal)
  // What a crash left is taken in first, and what is in memory is what is on disk.
  await repository.reload()
  // The new indexes would not list them, and nobody would know any more what the copy has.
  if (repository.doubtful.size > 0)
    throw fail('offsite_unreachable', 'Nothing is given back while it is not known which packs the off-site store has.')
  const live = await mark(repository, signal)
  const partBytes = await removeParts(repository, live.parts)
  const old: string[] = []
  for await (const { name } of repository.blobs.list('index/')) old.push(name)
  const sweep = createSweep(repository, live, options)
  const packsBefore = repository.packs.size
  const bytesBefore = totalHere(repository, repository.packs)
  let packsRewritten = 0
  let packsDone = 0
  try {
    for await (const pack of listed(repository)) {
      signal.throwIfAborted()
      if ((await sweep.judge(pack)) === 'rewritten') packsRewritten++
      report(++packsDone, packsBefore)
    }
    await sweep.finish()
  } catch (error) {
    await sweep.abort()
    throw error
  }
  const storedBytes = totalHere(repository, sweep.kept)
  const packsDeleted = sweep.doomed.length
  const freedBytes = bytesBefore - storedBytes + partBytes
  const result = { packsBefore, packsDeleted, packsRewritten, freedBytes, storedBytes }
  if (packsDeleted === 0 && old.length <= indexesFor(sweep.tableBytes()) + INDEXES_TOO_MANY) return result
  const indexes = createIndexWriter(repository.blobs, repository.sealer)
  for (const pack of sweep.fresh) await indexes.add(pack)
  for await (const pack of listed(repository)) if (sweep.kept.has(pack.packId)) await indexes.add(pack)
  await indexes.finish()
  try {
    for (const name of old) await repository.blobs.delete(name)
    for (const packId of sweep.doomed) await repository.blobs.delete(packBlob(packId))
    if (live.damaged === 0) await repository.blobs.delete(DAMAGE_BLOB)
  } finally {
    // Also where it was cut short: no backup may count on a pack that is gone.
    await repository.reload()
  }
  return result
}

/** Pack after pack, not all their tables at once. */
async function* listed({ blobs, sealer, packs }: Repository): AsyncGenerator<WrittenPack, void, undefined> {
  for await (const pack of listedPacks(blobs, sealer, () => {})) if (packs.has(pack.packId)) yield pack
}

/** On the disk. */
function totalHere({ isAway }: Repository, packs: Map<string, number>): number {
  let bytes = 0
  for (const [packId, sizeBytes] of packs) if (!isAway(packId)) bytes += sizeBytes
  return bytes
}

/** No backup is under way that would count on one. */
async function removeParts({ blobs }: Repository, needed: ReadonlySet<string>): Promise<number> {
  let bytes = 0
  for await (const { name, sizeBytes } of blobs.list('parts/')) {
    if (needed.has(name)) continue
    await blobs.delete(name)
    bytes += sizeBytes
  }
  return bytes
}

interface Marks {
  has(block: number): boolean
  damaged: number
  /** The names of those that a manifest needs, or from which what is damaged in another is read. */
  parts: ReadonlySet<string>
}

/** A manifest that cannot be read might need anything: nothing is given back until it is deleted. */
async function mark(repository: Repository, signal: AbortSignal): Promise<Marks> {
  const { index } = repository
  const bits = new Uint8Array(Math.ceil(index.blockCount / 8) + 1)
  const parts = new Set<string>()
  /** What many share is looked at once. */
  const seen = new Set<string>()
  let damaged = 0
  const need = ({ serverId }: ManifestName, part: PartRef | undefined) => {
    if (part) parts.add(partBlob(serverId, part.id))
  }
  for (const name of await manifestNames(repository)) {
    await orRefuse(name, () =>
      withManifest(repository, name, () =>
        unlessGone(async () => {
          const manifest = await openIfThere(repository, name)
          for (const part of manifest?.parts ?? []) need(name, part)
          for await (const { raw: chunk, part } of manifest?.rawChunks(seen) ?? []) {
            signal.throwIfAborted()
            need(name, part)
            const markBlock = (idAt: number) => {
              const block = index.findAny(chunk, idAt)
              if (block < 0) return
              if (index.isDamaged(block)) damaged++
              bits[block >> 3] = (bits[block >> 3] ?? 0) | (1 << (block & 7))
            }
            const isWhole = wholeIn(index, chunk)
            visitIds(chunk, markBlock, (at) => {
              // What is left of the patch stays as well: it may be healed.
              if (isWhole(at)) markBlock(at + PATCHED.name)
              return false
            })
          }
        }),
      ),
    )
  }
  return { has: (block) => ((bits[block >> 3] ?? 0) & (1 << (block & 7))) !== 0, damaged, parts }
}

async function orRefuse(name: ManifestName, mark: () => Promise<unknown>): Promise<void> {
  try {
    await mark()
  } catch (error) {
    if (!(error instanceof Damage)) throw error
    throw fail('backup_damaged', `Nothing is given back while the manifest of ${name.backupId} cannot be read.`, error)
  }
}

function createSweep(repository: Repository, live: Marks, options: { graceMs: number; now: number }) {
  const { blobs, index } = repository
  /** With their sizes; those that were made just now too. */
  const kept = new Map<string, number>()
  const doomed: string[] = []
  const fresh: WrittenPack[] = []
  let tableBytes = 0
  let target: Awaited<ReturnType<typeof createPack>> | undefined

  /** The block is needed, and this is where it is read from. */
  const isUsed = (packId: string, frame: Frame, id: Uint8Array) => {
    const block = index.findAny(id)
    if (block < 0 || !live.has(block)) return false
    const place = index.place(block)
    return place.packId === packId && place.offset === frame.offset
  }

  async function copy(packId: string, frames: Frame[]): Promise<void> {
    for (const frame of frames) {
      target ??= await createPack(blobs)
      const bytes = await blobs.get(packBlob(packId), { offset: frame.offset, length: frame.storedLength })
      target.append(bytes, tableOf(frame))
      await target.settled()
      if (target.isFull) await closeTarget()
    }
  }

  async function closeTarget(): Promise<void> {
    if (target) {
      const made = await target.finish()
      keep(made)
      fresh.push(made)
    }
    target = undefined
  }

  function keep({ packId, sizeBytes, table }: WrittenPack): void {
    kept.set(packId, sizeBytes)
    tableBytes += table.length
  }

  return {
    kept,
    doomed,
    fresh,
    tableBytes: () => tableBytes,
    async judge(pack: WrittenPack): Promise<'kept' | 'deleted' | 'rewritten'> {
      const { packId, sizeBytes, table } = pack
      const used = decodeTable(table).filter((frame) => frame.blocks.some(({ id }) => isUsed(packId, frame, id)))
      const usedBytes = used.reduce((sum, frame) => sum + frame.storedLength, 0)
      const isSound = !repository.damagedBlobs.has(packBlob(packId))
      // Where a needed block is damaged is known by its pack: it stays there until a backup has stored it anew.
      const isHurt = used.some((frame) => frame.blocks.some(({ id }) => index.isDamaged(index.findAny(id))))
      const { modifiedAt } = await blobs.stat(packBlob(packId))
      const isYoung = used.length === 0 && modifiedAt > options.now - options.graceMs
      const isNeededAway = used.length > 0 && repository.isAway(packId)
      if (isHurt || isNeededAway || (isSound && (isYoung || usedBytes >= sizeBytes * WORTH_KEEPING))) {
        keep(pack)
        return 'kept'
      }
      await copy(packId, used)
      doomed.push(packId)
      return used.length === 0 ? 'deleted' : 'rewritten'
    },
    finish: closeTarget,
    async abort() {
      await target?.abort()
      for (const { packId } of fresh) await blobs.delete(packBlob(packId))
    },
  }
}
