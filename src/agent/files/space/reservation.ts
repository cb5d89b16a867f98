// Space reserved by one transfer: in its server's quota from when it is announced, on the disk only for what has really
// arrived and a little ahead of it, so that a sender who announces much and sends little costs nobody anything.
import { type Amount, NOTHING, sum } from './amounts.ts'
import type { ServerDisk } from './disk.ts'
import type { Account } from './usage.ts'

/** Large enough that asking for room costs nothing, small enough that what is taken ahead is missed by nobody. */
export const STEP_BYTES = 4 * 1024 * 1024

export interface Reservation extends Disposable {
  /** For what somebody says will come on top of what is held. Frees nothing. */
  announce(bytes: number, entries?: number): Promise<void>
  /** For one more file or directory. Undefined, so that nobody need wait, where there is room as it is. */
  takeEntry(): Promise<void> | undefined
  /** Takes room for bytes that are there to be written, at the cost of the trash if need be. */
  grow(bytes: number): Promise<void>
  /** Takes room that is free as it is. False, and nothing is taken, when there is none. */
  tryGrow(bytes: number): Promise<boolean>
  /** Announced, and not grown into yet. */
  unarrived(): number
  /** Taken from the disk, and not written yet. */
  unwritten(): number
  written(bytes: number): void
  /** Nothing is being written any more, and what lies in staging takes this much: the rest of the disk is given back. */
  settle(arrived: number): void
  /**
   * This much in all is complete. Must come before it is put in its place: only here, where nothing but that is left
   * to do, does the trash of the server make way for its quota. Makes room for `beside` too, which the caller takes next: all
   * of it or none. Fails with `quota_exceeded`.
   */
  clear(bytes: number, entries: number, beside?: Amount): Promise<void>
  /** What was cleared has become real: it now counts as used. What is left over is given back. */
  commit(): void
}

export interface OwnReservation extends Reservation {
  /** Announces it and takes it from the disk in one. */
  takeWhole(bytes: number, entries: number): Promise<void>
}

/** `held` of it counts as promised, and lies on the disk, already. */
export function createReservation(account: Account, disk: ServerDisk, held: Amount = NOTHING): OwnReservation {
  let promised = held.bytes
  let promisedEntries = held.entries
  let arrived = held.bytes
  let unwritten = 0
  let cleared = NOTHING
  const scansBefore = account.scans()
  const unarrived = () => Math.max(0, promised - arrived)

  function release(): void {
    account.release({ bytes: promised, entries: promisedEntries }, cleared)
    disk.give(unwritten)
    promised = promisedEntries = arrived = unwritten = 0
    cleared = NOTHING
  }

  async function promise(amount: Amount): Promise<void> {
    await account.promise(amount)
    promised += amount.bytes
    promisedEntries += amount.entries
  }

  function take(bytes: number): void {
    arrived += bytes
    unwritten += bytes
  }

  /** Whatever fails, what was promised for it is given back. What was announced before is promised already. */
  async function promising<T>(bytes: number, entries: number, work: () => Promise<T>): Promise<T> {
    if (bytes > 0 || entries > 0) await promise({ bytes, entries })
    try {
      return await work()
    } catch (error) {
      account.release({ bytes, entries }, NOTHING)
      promised -= bytes
      promisedEntries -= entries
      throw error
    }
  }

  return {
    unarrived,
    unwritten: () => unwritten,
    announce: (bytes, entries = 0) =>
      promising(bytes, entries, async () => {
        const short = await disk.shortage(bytes)
        if (short > 0) return await disk.requireFreeable(bytes)
        // The first step is what small transfers need: with it they ask the disk once.
        const step = Math.min(bytes, STEP_BYTES)
        disk.takeFound(step)
        take(step)
      }),
    takeEntry() {
      const one = { bytes: 0, entries: 1 }
      if (!account.tryPromise(one)) return promise(one)
      promisedEntries++
      return undefined
    },
    async takeWhole(bytes, entries) {
      await promising(bytes, entries, async () => {
        await disk.take(bytes)
        // Written from now on by the kernel, which does not tell us how far it has come.
        disk.give(bytes)
        arrived += bytes
      })
    },
    async grow(bytes) {
      await promising(Math.max(0, bytes - unarrived()), 0, () => disk.take(bytes))
      take(bytes)
    },
    async tryGrow(bytes) {
      const more = Math.max(0, bytes - unarrived())
      if (more > 0 && !account.tryPromise({ bytes: more, entries: 0 })) return false
      promised += more
      if (await disk.tryTake(bytes)) {
        take(bytes)
        return true
      }
      account.release({ bytes: more, entries: 0 }, NOTHING)
      promised -= more
      return false
    },
    written(bytes) {
      disk.give(bytes)
      unwritten -= bytes
    },
    settle(bytes) {
      disk.give(unwritten)
      unwritten = 0
      arrived = bytes
    },
    async clear(bytes, entries, beside = NOTHING) {
      const more = { bytes: Math.max(0, bytes - cleared.bytes), entries: Math.max(0, entries - cleared.entries) }
      await account.clear(sum(more, beside))
      account.release(NOTHING, beside)
      cleared = sum(cleared, more)
    },
    commit() {
      const made = cleared
      release()
      account.add(made, scansBefore)
    },
    [Symbol.dispose]: release,
  }
}
