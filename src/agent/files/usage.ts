// How much of its quota a server uses. What we write is accounted for as it is written; what the game writes is found
// by a rescan. Files and trash count, by the disk space they take; what is still being staged is held by reservations,
// so that transfers that run together cannot pass the quota together. The trash of the server makes way for what would
// not fit otherwise, in the moment in which a transfer that is complete is put in its place.
import type { DiskUsage } from '../../contract/agent-files.ts'
import { fail } from '../../contract/errors.ts'
import { carryOut, type ServerDisk } from './disk.ts'
import { createReservation, type Reservation } from './reservation.ts'
import { openSandbox } from './sandbox.ts'
import { type FreeableTrash, type MayFree, planFreeing, planFreeingUpTo } from './trash-freeing.ts'
import { isTrashRecord } from './trash-records.ts'

const BLOCK_BYTES = 4096
const SMALLEST_RESCAN_GAP_MS = 5_000
const MAX_SCANS = 3

export interface Usage {
  /**
   * For what somebody says will come. Refused with `quota_exceeded` or `disk_full` if it could not fit even with the
   * trash gone; nothing is freed for it before its bytes are there. Given back when disposed of without a commit.
   */
  announce(bytes: number): Promise<Reservation>
  /** For `bytes` in `files` many files whose size we have measured ourselves, and which are written now. */
  reserve(bytes: number, files: number): Promise<Reservation>
  /** For what lies in staging already and goes on after a restart: counted without asking whether there is room. */
  hold(bytes: number): Reservation
  /** This much was put in its place by something that has not asked for room. */
  add(bytes: number): void
  /** Frees trash, oldest first, until files and trash fit the quota, or nothing is left that may go. */
  shrink(mayFree: MayFree): Promise<void>
  /** This much of the trash was emptied. */
  trashFreed(bytes: number): void
  /** The division into files and trash has changed. */
  touch(): void
  read(): Promise<DiskUsage>
  rescan(signal?: AbortSignal): Promise<void>
  /** Without a look at the disk. */
  quotaBytes(): number | null
  setQuota(bytes: number | null): void
}

/** What reservations do to the account. */
export interface Account {
  /** Counts this much as reserved, or fails with `quota_exceeded` if it would not fit even with the server's trash gone. */
  promise(bytes: number): Promise<void>
  /** Whether this much fits as things are; if so it counts as reserved. */
  tryPromise(bytes: number): boolean
  /** This much of what is reserved is about to become files: makes room for it, at the cost of the trash if need be. */
  clear(bytes: number): Promise<void>
  /** What was reserved, and cleared, no longer is. */
  release(promised: number, cleared: number): void
  /** It has become files. */
  add(bytes: number, scansBefore: number): void
  scans(): number
}

export function spaceOf(bytes: number, files = 1): number {
  return Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES + (files - 1) * BLOCK_BYTES
}

/** Of that, what fills whole blocks. */
export function blocksIn(bytes: number): number {
  return Math.floor(bytes / BLOCK_BYTES) * BLOCK_BYTES
}

export function createUsage(deps: {
  serverId: string
  folders: { files: string; trash: string }
  quotaBytes: number | null
  trash: FreeableTrash
  disk: ServerDisk
  now: () => number
}): Usage {
  const { disk, trash: ownTrash } = deps
  let quota = deps.quotaBytes
  let used = 0
  let trash = 0
  let promised = 0
  /** Of what is promised: what is being put in its place, with the room for it made. */
  let cleared = 0
  let changes = 0
  let scans = 0
  let isStale = true
  let scannedAt = Number.NEGATIVE_INFINITY
  let scanning: Promise<void> | undefined

  async function scan(signal?: AbortSignal): Promise<void> {
    for (let round = 0; round < MAX_SCANS; round++) {
      const before = changes
      // A crash while a file is replaced can leave it with a name on both sides.
      const linked = new Set<bigint>()
      const trashBytes = await measure(deps.folders.trash, isTrashRecord, linked, signal)
      const filesBytes = await measure(deps.folders.files, () => false, linked, signal)
      used = filesBytes + trashBytes
      trash = trashBytes
      isStale = changes !== before
      if (!isStale) break
    }
    scans++
    scannedAt = deps.now()
  }

  function rescan(signal?: AbortSignal): Promise<void> {
    scanning ??= scan(signal).finally(() => {
      scanning = undefined
    })
    return scanning
  }

  const over = (bytes: number) => (quota === null ? 0 : used + bytes - quota)
  const scannedLongAgo = () => deps.now() - scannedAt > SMALLEST_RESCAN_GAP_MS
  const exceeded = () => fail('quota_exceeded', 'The disk quota of this server does not allow it.')

  /** What the game has written counts before anything is refused or freed. */
  async function lookAgain(bytes: () => number): Promise<void> {
    if (scannedAt === Number.NEGATIVE_INFINITY) await rescan()
    if (over(bytes()) > 0 && scannedLongAgo()) await rescan()
  }

  async function clearByFreeing(bytes: number): Promise<void> {
    const short = over(cleared + bytes)
    const plan = short > 0 ? await planFreeing([ownTrash], short) : new Map()
    if (!plan) throw exceeded()
    await carryOut(plan, { reason: 'quota', requestedBy: deps.serverId })
    if (over(cleared + bytes) > 0) throw exceeded()
    cleared += bytes
  }

  // Nothing is awaited between the last look and the taking, so two callers cannot both have the last byte.
  const account: Account = {
    async promise(bytes) {
      const all = () => promised + bytes
      await lookAgain(all)
      for (let freeable = 0; over(all()) > freeable; ) {
        const short = over(all())
        if (!(await planFreeing([ownTrash], short))) throw exceeded()
        freeable = short
      }
      promised += bytes
    },
    tryPromise(bytes) {
      if (scannedAt === Number.NEGATIVE_INFINITY || over(promised + bytes) > 0) return false
      promised += bytes
      return true
    },
    async clear(bytes) {
      const all = () => cleared + bytes
      await lookAgain(all)
      if (over(all()) > 0) return await disk.deciding(() => clearByFreeing(bytes))
      cleared += bytes
    },
    release(bytes, clearedBytes) {
      promised -= bytes
      cleared -= clearedBytes
    },
    add(bytes, scansBefore) {
      used += bytes
      changes++
      // A scan since then may have come upon it already, and it would count twice until the next one.
      if (scans !== scansBefore) isStale = true
    },
    scans: () => scans,
  }

  return {
    async announce(bytes) {
      const reservation = createReservation(account, disk)
      await reservation.announce(spaceOf(bytes))
      return reservation
    },
    async reserve(bytes, files) {
      const reservation = createReservation(account, disk)
      await reservation.takeWhole(spaceOf(bytes, files))
      return reservation
    },
    hold(bytes) {
      promised += spaceOf(bytes)
      return createReservation(account, disk, spaceOf(bytes))
    },
    add(bytes) {
      used += bytes
      changes++
      isStale = true
    },
    async shrink(mayFree) {
      if (quota === null || (scannedAt !== Number.NEGATIVE_INFINITY && over(0) <= 0)) return
      await rescan()
      await disk.deciding(async () => {
        const { plan } = await planFreeingUpTo([ownTrash], over(0), mayFree)
        await carryOut(plan, { reason: 'quota', requestedBy: deps.serverId })
      })
    },
    trashFreed(bytes) {
      used = Math.max(0, used - bytes)
      trash = Math.max(0, trash - bytes)
      changes++
    },
    touch() {
      isStale = true
      changes++
    },
    async read() {
      if (isStale || scannedLongAgo()) await rescan()
      return { usedBytes: used, trashBytes: trash, reservedBytes: promised, quotaBytes: quota }
    },
    rescan,
    quotaBytes: () => quota,
    setQuota(bytes) {
      quota = bytes
    },
  }
}

async function measure(
  folder: string,
  isRecord: (path: string) => boolean,
  linked: Set<bigint>,
  signal?: AbortSignal,
): Promise<number> {
  let bytes = 0
  for await (const { stats, path } of openSandbox(folder).walk('/', {
    anyDepth: true,
    ...(signal ? { signal } : {}),
  })) {
    if (isRecord(path) || stats.isDirectory()) continue
    if (stats.nlink > 1n) {
      if (linked.has(stats.ino)) continue
      linked.add(stats.ino)
    }
    bytes += diskBytes(stats)
  }
  return bytes
}

export function diskBytes(stats: { blocks: bigint }): number {
  return Number(stats.blocks) * 512
}
