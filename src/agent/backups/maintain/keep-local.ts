// Lets old packs leave the disk once the off-site copy has them (`GAMEKEEPER_KEEP_LOCAL`). What the newest backup of a
// server needs stays: the restore that people wait for is as quick as ever, and does not need the network.
import type { KeepLocal } from '../../../contract/keep-local.ts'
import { wholeIn } from '../blocks/prior-blocks.ts'
import { visitIds } from '../format/entries.ts'
import { Damage, lastSegment } from '../format/format.ts'
import { type ManifestName, manifestNames, openIfThere, unlessGone } from '../store/manifests.ts'
import type { Repository } from '../store/repository.ts'

/** For so many at a time nobody else writes to the store, or reads from it. */
const BATCH = 64
/** While it waits, no backup begins. What does not leave now leaves after the next run. */
const WAIT_MS = 30_000

export interface LeaveRequest {
  keep: KeepLocal
  /** What the copy has, by name and with its size, as it was listed after everything was sent. */
  stored: ReadonlyMap<string, number>
  now: number
  signal: AbortSignal
}

export interface LeftPacks {
  packs: number
  bytes: number
}

interface LocalPack {
  name: string
  sizeBytes: number
  modifiedAt: number
  /** As far as is known. */
  isCopySound: boolean
}

/**
 * Oldest first, until what stays is within `keep`. Each is noted durably before it is taken off the disk, so a crash leaves
 * it there or in the copy. Takes `writing` alone, if it is free before long; whoever calls it holds nothing of it.
 */
export async function leaveOffsite(repository: Repository, request: LeaveRequest): Promise<LeftPacks> {
  const { signal } = request
  const left: LeftPacks = { packs: 0, bytes: 0 }
  // Found while others work: what has changed by the time that they do not is found again.
  let needs = await needsOf(repository, undefined, signal)
  for (;;) {
    if (surplusOf(await localPacks(repository), needs, request).length === 0) return left
    using exclusive = await exclusiveSoon(repository, signal)
    if (!exclusive) return left
    needs = await needsOf(repository, needs, signal)
    const leaving = surplusOf(await localPacks(repository), needs, request).slice(0, BATCH)
    for (const { name, sizeBytes } of leaving) {
      signal.throwIfAborted()
      await repository.blobs.leave(name, sizeBytes)
      left.packs++
      left.bytes += sizeBytes
    }
    if (leaving.length < BATCH) return left
  }
}

async function exclusiveSoon({ writing }: Repository, signal: AbortSignal): Promise<Disposable | undefined> {
  const patience = AbortSignal.timeout(WAIT_MS)
  try {
    return await writing.exclusive(AbortSignal.any([signal, patience]))
  } catch (error) {
    if (signal.aborted || !patience.aborted) throw error
    return undefined
  }
}

async function localPacks({ blobs, packs: known, copyDamage }: Repository): Promise<LocalPack[]> {
  const packs: LocalPack[] = []
  const unsound = await copyDamage.list()
  for await (const pack of blobs.local.list('packs/'))
    if (known.has(lastSegment(pack.name))) packs.push({ ...pack, isCopySound: !unsound.has(pack.name) })
  return packs.sort((a, b) => a.modifiedAt - b.modifiedAt)
}

/** Those that may leave and are beyond what is to be kept, oldest first. */
function surplusOf(packs: readonly LocalPack[], { needed }: Needs, { keep, stored, now }: LeaveRequest): LocalPack[] {
  const free = packs.filter(
    ({ name, sizeBytes, isCopySound }) =>
      isCopySound && stored.get(name) === sizeBytes && !needed.has(lastSegment(name)),
  )
  if ('ms' in keep) return free.filter(({ modifiedAt }) => modifiedAt < now - keep.ms)
  let beyond = packs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) - keep.bytes
  return free.filter(({ sizeBytes }) => {
    const isBeyond = beyond > 0
    beyond -= sizeBytes
    return isBeyond
  })
}

interface Needs {
  /** Of which state of the store they are. */
  state: string
  /** Packs that the newest backups need. */
  needed: ReadonlySet<string>
}

async function needsOf(repository: Repository, before: Needs | undefined, signal: AbortSignal): Promise<Needs> {
  const newest = await newestBackups(repository)
  const state = `${repository.generation} ${newest.map(({ backupId }) => backupId).join(' ')}`
  return before?.state === state ? before : { state, needed: await neededBy(repository, newest, signal) }
}

/** Of each server. Ids sort by the time of their request. */
async function newestBackups(repository: Repository): Promise<ManifestName[]> {
  const newest = new Map<string, ManifestName>()
  for (const name of await manifestNames(repository))
    if (name.backupId > (newest.get(name.serverId)?.backupId ?? '')) newest.set(name.serverId, name)
  return [...newest.values()].sort((a, b) => (a.backupId < b.backupId ? -1 : 1))
}

/** The packs in which their blocks are. */
async function neededBy(repository: Repository, backups: ManifestName[], signal: AbortSignal): Promise<Set<string>> {
  const needed = new Set<string>()
  for (const name of backups) {
    await unlessDamaged(() =>
      unlessGone(async () => {
        for await (const { raw: chunk } of (await openIfThere(repository, name))?.rawChunks() ?? []) {
          signal.throwIfAborted()
          const { index } = repository
          const need = (idAt: number) => {
            const block = index.findAny(chunk, idAt)
            if (block >= 0) needed.add(index.framePlace(index.frameOf(block)).packId)
          }
          visitIds(chunk, need, wholeIn(index, chunk))
        }
      }),
    )
  }
  return needed
}

/** A manifest that cannot be read is told elsewhere. That its packs may leave loses nothing. */
async function unlessDamaged(read: () => Promise<unknown>): Promise<void> {
  try {
    await read()
  } catch (error) {
    if (!(error instanceof Damage)) throw error
  }
}
