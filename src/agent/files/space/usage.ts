// How much of its quota a server uses, in bytes and in entries. Our own writes are counted as they happen; the game's
// are found by a rescan. Files, directories and trash count by the disk space they occupy; staged data is held by
// reservations, so that concurrent transfers cannot exceed the quota together. The server's trash is freed for what
// would not fit otherwise, at the moment a complete transfer is moved into place.
import { fstatSync } from 'node:fs'
import type { DiskUsage } from '../../../contract/agent/agent-files.ts'
import { fail, isFailure } from '../../../contract/errors.ts'
import { RECORDS_BEYOND_QUOTA_BYTES } from '../../../contract/fixed-limits.ts'
import { createMutex } from '../../../kit/waiting/mutex.ts'
import { openOwnFolder } from '../sandbox/directory.ts'
import { explainDisk } from '../sandbox/errors.ts'
import {
  type FreeableTrash,
  type FreeingPlan,
  type MayFree,
  planAndHold,
  planFreeing,
  planFreeingUpTo,
  tryHold,
} from '../trash/trash-freeing.ts'
import {
  type Amount,
  atLeastNothing,
  diskBytes,
  isSome,
  isWithin,
  larger,
  minus,
  NOTHING,
  smaller,
  spaceOf,
  sum,
} from './amounts.ts'
import type { ServerDisk } from './disk.ts'
import { measureBeneath } from './measure.ts'
import { createReservation, type Reservation } from './reservation.ts'
import { createRoomMaking, setAsidePlanned } from './room-making.ts'

const SMALLEST_RESCAN_GAP_MS = 5_000
const MAX_SCANS = 3
/** Nobody loses a world for the record of a small deletion. */
const OFFSET_BY_MAX_BYTES = 64 * 1024
/** So many times as long as the last scan took. */
const RESCAN_PAUSE = 10

export interface Usage {
  /**
   * For what somebody says will come. Refused with `quota_exceeded` or `disk_full` if it could not fit even with the
   * trash gone; nothing is freed for it before its bytes are there. Given back when disposed of without a commit.
   */
  announce(bytes: number, entries: number): Promise<Reservation>
  /** For `bytes` in `entries` files and directories that we have measured ourselves, and which are written now. */
  reserve(bytes: number, entries: number): Promise<Reservation>
  /** For a file that lies in staging already and goes on after a restart: counted without asking whether there is room. */
  hold(bytes: number): Reservation
  /** For what is made within the block, and counted by `changed` as it is. At the cost of the trash if need be. */
  room(amount: Amount): Promise<Room>
  /** This much was put in its place by something that has not asked for room. */
  add(amount: Amount): void
  /** This much came or went as a part of something else: of directories, and of records in the trash. */
  changed(amount: Amount): void
  /** Whether this many entries more fit as things are, beside those of the transfers under way. */
  fitsEntries(entries: number): boolean
  /** Frees trash, oldest first, until files and trash fit the quota, or nothing is left that may go. */
  shrink(mayFree: MayFree): Promise<void>
  /**
   * After a deletion, whose record takes no room beforehand, so that deleting is always possible: frees small items that take
   * as much as this record, and only where the records are too much and the server exceeds its quota. Resolves before what
   * goes is removed.
   */
  offset(record: Amount, mayFree: MayFree): Promise<void>
  /** This much came into the trash, or was emptied out of it, which are less than nothing then. */
  trashChanged(amount: Amount): void
  /** The division into files and trash has changed. */
  touch(): void
  read(): Promise<DiskUsage>
  /** As last measured, with what we have written since, without a look at the disk; null where it never was. */
  knownBytes(): number | null
  rescan(signal?: AbortSignal): Promise<void>
  /** Without a look at the disk. */
  quota(): Quota
  setQuota(quota: Quota): void
}

export interface Room extends Disposable {
  grow(amount: Amount): Promise<void>
  /** This much of it is made, and counts by itself. */
  shrink(amount: Amount): void
}

/** null: no limit. */
export interface Quota {
  bytes: number | null
  entries: number | null
}

/** What reservations do to the account. */
export interface Account {
  /** Counts this much as reserved, or fails with `quota_exceeded` if it would not fit even with the server's trash gone. */
  promise(amount: Amount): Promise<void>
  /** Whether this much fits as things are; if so it counts as reserved. */
  tryPromise(amount: Amount): boolean
  /** This much of what is reserved is about to become files: makes room for it, at the cost of the trash if need be. */
  clear(amount: Amount): Promise<void>
  /** What was reserved, and cleared, no longer is. */
  release(promised: Amount, cleared: Amount): void
  /** It has become files. */
  add(amount: Amount, scansBefore: number): void
  scans(): number
}

export function createUsage(deps: {
  serverId: string
  folders: { files: string; trash: string }
  quota: Quota
  trash: FreeableTrash
  disk: ServerDisk
  now: () => number
  /** For what fails when nobody waits for it any more. */
  onUnexpected: (error: unknown) => void
}): Usage {
  const { disk, trash: ownTrash } = deps
  /** Whoever decides which trash goes for the quota of this server sets it aside; it is removed after its turn. */
  const deciding = createMutex()
  const making = createRoomMaking()
  let quota = deps.quota
  let used = NOTHING
  let trash = NOTHING
  let promised = NOTHING
  /** Of what is promised: what is being put in its place, with the room for it made. */
  let cleared = NOTHING
  /** What has come since the scan that runs began to look: it may have been there already, and come upon this or not. */
  let meanwhile = NOTHING
  let changes = 0
  let scans = 0
  let isStale = true
  /** The last scan ended while things came and went: what seems to be too much may fit. */
  let mayBeLess = false
  let scanMs = 0
  let scannedAt = Number.NEGATIVE_INFINITY
  let scanning: Promise<void> | undefined

  async function scan(signal?: AbortSignal): Promise<void> {
    const begunAt = deps.now()
    for (let round = 0; round < MAX_SCANS; round++) {
      const before = changes
      meanwhile = NOTHING
      // A crash while a file is replaced can leave it with a name on both sides.
      const linked = new Set<bigint>()
      openOwnFolder(deps.folders.trash)[Symbol.dispose]()
      const inTrash = await measureBeneath(deps.folders.trash, linked, signal)
      const inFiles = await measureBeneath(deps.folders.files, linked, signal)
      isStale = changes !== before
      const measured = sum(sum(inFiles, inTrash), meanwhile)
      // Rather twice than not at all: what was moved meanwhile may not have been come upon.
      used = isStale ? larger(used, measured) : measured
      trash = inTrash
      mayBeLess = isStale
      if (!isStale) break
    }
    scans++
    scannedAt = deps.now()
    scanMs = scannedAt - begunAt
  }

  function rescan(signal?: AbortSignal): Promise<void> {
    scanning ??= scan(signal).finally(() => {
      scanning = undefined
    })
    return scanning
  }

  /** How much is missing for this much on top of what is used. */
  const over = (amount: Amount): Amount => ({
    bytes: quota.bytes === null ? 0 : Math.max(0, used.bytes + amount.bytes - quota.bytes),
    entries: quota.entries === null ? 0 : Math.max(0, used.entries + amount.entries - quota.entries),
  })
  const isOver = (amount: Amount) => isSome(over(amount))
  /** Beyond what is on its way for others, who have cleared their room already. */
  const missing = (amount: Amount) => atLeastNothing(sum(over(amount), minus(making.lacking())))
  const scannedLongAgo = () => deps.now() - scannedAt > SMALLEST_RESCAN_GAP_MS
  /** Not so often that it is all that is done. */
  const isWorthALook = () => mayBeLess && deps.now() - scannedAt > RESCAN_PAUSE * scanMs
  const exceeded = (short: Amount) =>
    short.bytes > 0
      ? fail('quota_exceeded', 'The disk quota of this server does not allow it.')
      : fail('quota_exceeded', `This server may have at most ${quota.entries} files and directories.`)

  /** What the game has written counts before anything is refused or freed. */
  async function lookAgain(amount: () => Amount): Promise<void> {
    if (scannedAt === Number.NEGATIVE_INFINITY) await rescan()
    if (isOver(amount()) && (isWorthALook() || scannedLongAgo())) await rescan()
  }

  /** Resolves in the turn of whoever decides; `done` when what goes is gone. */
  async function setAside(plan: FreeingPlan, lack: () => Amount): Promise<{ done: Promise<void> }> {
    const removals = await setAsidePlanned(plan, { reason: 'quota', requestedBy: deps.serverId })
    const done = making.remove(removals, lack())
    disk.watch(done)
    return { done }
  }

  /** True once the room is there, false where it is worth another try: what is left of the trash has been set aside. */
  async function tryClearByFreeing(amount: Amount): Promise<boolean> {
    let othersEnd: Promise<void> | undefined
    const release = (error: unknown): never => {
      cleared = sum(cleared, minus(amount))
      throw error
    }
    let short = NOTHING
    const room = await deciding(async () => {
      othersEnd = making.nextEnd()
      short = missing(sum(cleared, amount))
      cleared = sum(cleared, amount)
      if (!isSome(short)) return undefined
      const plan = await planAndHold([ownTrash], short)
      return plan ? await setAside(plan, () => missing(cleared)) : false
    }).catch(release)
    if (room === undefined) return true
    if (room) {
      // Whoever decides has cleared room that is not on its way yet.
      const left = await room.done.then(() => deciding(async () => missing(cleared))).catch(release)
      return !isSome(left) || release(exceeded(left))
    }
    if (!othersEnd) return release(exceeded(short))
    cleared = sum(cleared, minus(amount))
    await othersEnd
    return false
  }

  // Nothing is awaited between the last look and the taking, so two callers cannot both have the last byte.
  const account: Account = {
    async promise(amount) {
      const all = () => sum(promised, amount)
      await lookAgain(all)
      let freeable = NOTHING
      for (let short = over(all()); !isWithin(short, freeable); short = over(all())) {
        const othersEnd = making.nextEnd()
        if (await planFreeing([ownTrash], short)) freeable = short
        else if (!othersEnd) throw exceeded(short)
        else await othersEnd
      }
      promised = sum(promised, amount)
    },
    tryPromise(amount) {
      if (scannedAt === Number.NEGATIVE_INFINITY || isOver(sum(promised, amount))) return false
      promised = sum(promised, amount)
      return true
    },
    async clear(amount) {
      // What needs no room frees nothing, however far the server is over its quota already.
      if (!isSome(amount)) return
      const all = () => sum(cleared, amount)
      await lookAgain(all)
      if (!isOver(all())) cleared = sum(cleared, amount)
      else while (!(await tryClearByFreeing(amount)));
    },
    release(amount, clearedAmount) {
      promised = sum(promised, minus(amount))
      cleared = sum(cleared, minus(clearedAmount))
    },
    add(amount, scansBefore) {
      count(amount)
      // A scan since then may have come upon it already, and it would count twice until the next one.
      if (scans !== scansBefore) isStale = true
    },
    scans: () => scans,
  }

  function count(amount: Amount): void {
    used = atLeastNothing(sum(used, amount))
    meanwhile = sum(meanwhile, atLeastNothing(amount))
    changes++
  }

  return {
    async announce(bytes, entries) {
      const reservation = createReservation(account, disk)
      await reservation.announce(spaceOf(bytes), entries)
      return reservation
    },
    async reserve(bytes, entries) {
      const reservation = createReservation(account, disk)
      await reservation.takeWhole(spaceOf(bytes, entries), entries)
      return reservation
    },
    hold(bytes) {
      const held = { bytes: spaceOf(bytes), entries: 1 }
      promised = sum(promised, held)
      return createReservation(account, disk, held)
    },
    async room(amount) {
      const room = createRoom(account)
      await room.grow(amount)
      return room
    },
    add(amount) {
      count(amount)
      isStale = true
    },
    changed: count,
    fitsEntries: (entries) =>
      scannedAt !== Number.NEGATIVE_INFINITY && over(sum(promised, { bytes: 0, entries })).entries === 0,
    async shrink(mayFree) {
      if (scannedAt !== Number.NEGATIVE_INFINITY && !isOver(NOTHING)) return
      await rescan()
      const { done } = await deciding(async () => {
        for (;;) {
          const { plan, isEnough } = await planFreeingUpTo([ownTrash], missing(NOTHING), mayFree)
          if (tryHold(plan)) return await setAside(plan, () => (isEnough ? missing(NOTHING) : NOTHING))
        }
      })
      await done
    },
    async offset(record, mayFree) {
      const excess = () => atLeastNothing(smaller(record, missing(NOTHING)))
      if (scannedAt === Number.NEGATIVE_INFINITY || !isSome(excess())) return
      const mayOffset: MayFree = async (item) => item.bytes <= OFFSET_BY_MAX_BYTES && (await mayFree(item))
      // The deletion is done: what is in the way of this is not its answer.
      const orReport = (error: unknown) => void (isFailure(explainDisk(error)) || deps.onUnexpected(error))
      try {
        if (!(await ownTrash.hasRecordsBeyond(RECORDS_BEYOND_QUOTA_BYTES))) return
        await lookAgain(() => NOTHING)
        const { done } = await deciding(async () => {
          for (;;) {
            const { plan } = await planFreeingUpTo([ownTrash], excess(), mayOffset)
            if (tryHold(plan)) return await setAside(plan, () => NOTHING)
          }
        })
        done.catch(orReport)
      } catch (error) {
        orReport(error)
      }
    },
    trashChanged(amount) {
      count(amount)
      trash = atLeastNothing(sum(trash, amount))
    },
    touch() {
      isStale = true
      changes++
    },
    async read() {
      if (isStale || scannedLongAgo()) await rescan()
      return {
        usedBytes: used.bytes,
        trashBytes: trash.bytes,
        reservedBytes: promised.bytes,
        quotaBytes: quota.bytes,
        usedEntries: used.entries,
        trashEntries: trash.entries,
        reservedEntries: promised.entries,
        maxEntries: quota.entries,
      }
    },
    knownBytes: () => (scans === 0 ? null : used.bytes),
    rescan,
    quota: () => quota,
    setQuota(next) {
      quota = next
    },
  }
}

function createRoom(account: Account): Room {
  let held = NOTHING
  const shrink = (amount: Amount) => {
    account.release(NOTHING, amount)
    held = sum(held, minus(amount))
  }
  return {
    async grow(amount) {
      await account.clear(amount)
      held = sum(held, amount)
    },
    shrink,
    [Symbol.dispose]: () => shrink(held),
  }
}

/** Runs what puts a name into the directory, which may take more space for it. */
export function countingGrowth<T>(usage: Pick<Usage, 'changed'>, { fd }: { fd: number }, work: () => T): T {
  const before = diskBytes(fstatSync(fd, { bigint: true }))
  const result = work()
  const grown = diskBytes(fstatSync(fd, { bigint: true })) - before
  if (grown > 0) usage.changed({ bytes: grown, entries: 0 })
  return result
}
