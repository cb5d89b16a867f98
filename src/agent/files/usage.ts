// How much of its quota a server uses. What we write is accounted for as it is written; what the game writes is found
// by a rescan. Files and trash count, by the disk space they take; what is still being staged is held by reservations,
// so that transfers that run together cannot pass the quota together.
import { statfs } from 'node:fs/promises'
import type { DiskUsage } from '../../contract/agent-files.ts'
import { fail } from '../../contract/errors.ts'
import { openSandbox } from './sandbox.ts'
import { isTrashRecord } from './trash-records.ts'

const BLOCK_BYTES = 4096
const SMALLEST_RESCAN_GAP_MS = 5_000
const MAX_SCANS = 3
/** Never given away, so that records, logs and the database can still be written. */
const DISK_MARGIN_BYTES = 8 * 1024 * 1024

export interface Reservation extends Disposable {
  /** Takes more, or fails with `quota_exceeded` or `disk_full`. */
  grow(bytes: number): Promise<void>
  /** What was reserved has become real: it now counts as used. What is left over is given back. */
  commit(bytes: number): void
}

export interface Usage {
  /** Space for `bytes` in `files` many files. Given back when disposed of without a commit. */
  reserve(bytes: number, files?: number): Promise<Reservation>
  /** For what lies in staging already and goes on after a restart: counted without asking whether there is room. */
  hold(bytes: number): Reservation
  /** So much of the trash was emptied. */
  trashFreed(bytes: number): void
  /** The division into files and trash has changed. */
  touch(): void
  read(): Promise<DiskUsage>
  rescan(signal?: AbortSignal): Promise<void>
  setQuota(bytes: number | null): void
}

export function spaceOf(bytes: number, files = 1): number {
  return Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES + (files - 1) * BLOCK_BYTES
}

export function createUsage(deps: {
  folders: { files: string; trash: string }
  quotaBytes: number | null
  /** Empties the trash, oldest first, until so much is free or nothing is left. Tells how much was freed. */
  freeTrash: (bytes: number) => Promise<number>
  /** The same for the disk, which other servers' trash takes space of too. */
  freeDisk: (bytes: number) => Promise<void>
  now: () => number
}): Usage {
  let quota = deps.quotaBytes
  let used = 0
  let trash = 0
  let reserved = 0
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

  const missing = (bytes: number) => (quota === null ? 0 : used + reserved + bytes - quota)
  const scannedLongAgo = () => deps.now() - scannedAt > SMALLEST_RESCAN_GAP_MS

  async function take(bytes: number): Promise<void> {
    if (scannedAt === Number.NEGATIVE_INFINITY) await rescan()
    if (missing(bytes) > 0 && scannedLongAgo()) await rescan()
    if (missing(bytes) > 0) await deps.freeTrash(missing(bytes))
    // Nothing is awaited between this look and the taking, so two callers cannot both have the last byte.
    if (missing(bytes) > 0) throw fail('quota_exceeded', 'The disk quota of this server does not allow it.')
    reserved += bytes
    try {
      await requireDisk(bytes)
    } catch (error) {
      reserved -= bytes
      throw error
    }
  }

  function reservation(taken: number): Reservation {
    let held = taken
    const scansBefore = scans
    return {
      async grow(more) {
        await take(more)
        held += more
      },
      commit(actual) {
        reserved -= held
        held = 0
        used += actual
        changes++
        // A scan since then may have come upon it already, and it would count twice until the next one.
        if (scans !== scansBefore) isStale = true
      },
      [Symbol.dispose]() {
        reserved -= held
        held = 0
      },
    }
  }

  async function requireDisk(bytes: number): Promise<void> {
    const short = await shortage(deps.folders.files, bytes)
    if (short > 0) await deps.freeDisk(short)
    if (short > 0 && (await shortage(deps.folders.files, bytes)) > 0) throw fail('disk_full', 'The disk is full.')
  }

  return {
    async reserve(bytes, files = 1) {
      await take(spaceOf(bytes, files))
      return reservation(spaceOf(bytes, files))
    },
    hold(bytes) {
      reserved += spaceOf(bytes)
      return reservation(spaceOf(bytes))
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
      return { usedBytes: used, trashBytes: trash, reservedBytes: reserved, quotaBytes: quota }
    },
    rescan,
    setQuota(bytes) {
      quota = bytes
    },
  }
}

/** How much is missing on the disk for `bytes` more; 0 or less when there is room. */
async function shortage(folder: string, bytes: number): Promise<number> {
  const disk = await statfs(folder)
  return bytes + DISK_MARGIN_BYTES - disk.bavail * disk.bsize
}

async function measure(
  folder: string,
  isRecord: (path: string) => boolean,
  linked: Set<bigint>,
  signal?: AbortSignal,
): Promise<number> {
  let bytes = 0
  for await (const { stats, path } of openSandbox(folder).walk('/', signal ? { signal } : {})) {
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
