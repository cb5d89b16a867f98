// Space on a disk that servers share. Every writer reserves space here first. When there is none left, the oldest items
// in the trash of all servers on that disk are freed: only for bytes that have really arrived, only as many items as
// needed, and none if all of them would not be enough.
import { statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { fail } from '../../../contract/errors.ts'
import { createMutex } from '../../../kit/waiting/mutex.ts'
import { type FreeableTrash, planAndHold, planFreeing } from '../trash/trash-freeing.ts'
import { createRoomMaking, type RoomMaking, setAsidePlanned } from './room-making.ts'

/** Never given away, so that records, logs and the database can still be written. */
export const DISK_MARGIN_BYTES = 8 * 1024 * 1024

export interface TrashOnDisk {
  trash: FreeableTrash
  /** Where it lies: only what is on the same disk makes room there. */
  folder: string
}

/** What one server sees of the disk. */
export interface ServerDisk {
  /** How much is missing for `bytes` more; 0 or less when there is room. */
  shortage(bytes: number): Promise<number>
  /** Fails with `disk_full` unless that much would be there with all the trash of the disk gone. Frees nothing. */
  requireFreeable(bytes: number): Promise<void>
  /** Takes what is free. False, and nothing is taken, when it is not. */
  tryTake(bytes: number): Promise<boolean>
  /** Takes it, at the cost of the trash where it has to be. Fails with `disk_full`. */
  take(bytes: number): Promise<void>
  /** After `shortage` with nothing awaited in between: takes what it found to be free. */
  takeFound(bytes: number): void
  /** This many bytes of what was taken are written, or not needed any more. */
  give(bytes: number): void
  /** Trash of a server on this disk is being removed for another reason: whoever finds no room waits for it first. */
  watch(removal: Promise<void>): void
}

/** What all servers on one disk share. */
interface SharedDisk {
  /** Taken and not written yet. */
  taken: number
  making: RoomMaking
}

/** All servers of one machine, on as many disks as they are. */
export function createDisks(trashes: () => TrashOnDisk[]): (serverId: string, folder: string) => ServerDisk {
  /** Whoever decides which trash goes sets it aside, and no more: it is removed after its turn. */
  const deciding = createMutex()
  const disks = new Map<number, SharedDisk>()

  return (serverId, folder) => {
    const device = statSync(folder).dev
    const shared = disks.get(device) ?? { taken: 0, making: createRoomMaking() }
    disks.set(device, shared)
    const { making } = shared
    const onThisDisk = () =>
      trashes().flatMap(({ trash, folder: place }) => (deviceOf(place) === device ? [trash] : []))
    const add = (bytes: number) => {
      shared.taken += bytes
    }

    async function shortage(bytes: number): Promise<number> {
      const { bavail, bsize } = await statfs(folder)
      return bytes + DISK_MARGIN_BYTES + shared.taken - bavail * bsize
    }

    /** Beyond what is on its way for others, who have taken their room already. */
    const missing = async (bytes: number) => (await shortage(bytes)) - making.lacking().bytes

    async function tryTake(bytes: number): Promise<boolean> {
      if ((await shortage(bytes)) > 0) return false
      add(bytes)
      return true
    }

    /** Sets aside what has to go for room that is taken already. Answers when the room is there; false: not with what there is. */
    async function setAsideFor(short: number): Promise<{ done: Promise<void> } | false> {
      const wanted = { bytes: short, entries: 0 }
      const plan = await planAndHold(onThisDisk(), wanted)
      if (!plan) return false
      return { done: making.remove(await setAsidePlanned(plan, { reason: 'disk', requestedBy: serverId }), wanted) }
    }

    /** True once the room is there, false where it is worth another try: others have set aside what is left of the trash. */
    async function tryTakeAtCost(bytes: number): Promise<boolean> {
      let othersEnd: Promise<void> | undefined
      const room = await deciding(async () => {
        othersEnd = making.nextEnd()
        add(bytes)
        const short = await missing(0)
        return short > 0 ? await setAsideFor(short) : undefined
      }).catch(giveBack)
      if (room === undefined) return true
      if (room) {
        // The disk is written to only when the room is really there. Whoever decides has taken room that is not on its way yet.
        const left = await room.done.then(() => deciding(() => missing(0))).catch(giveBack)
        return left <= 0 || giveBack(full())
      }
      if (!othersEnd) return giveBack(full())
      add(-bytes)
      await othersEnd
      return false

      function giveBack(error: unknown): never {
        add(-bytes)
        throw error
      }
    }

    return {
      shortage,
      tryTake,
      takeFound: add,
      give: (bytes) => add(-bytes),
      watch: making.watch,
      async requireFreeable(bytes) {
        for (;;) {
          const othersEnd = making.nextEnd()
          const short = await missing(bytes)
          if (short <= 0 || (await planFreeing(onThisDisk(), { bytes: short, entries: 0 }))) return
          if (!othersEnd) throw full()
          await othersEnd
        }
      },
      async take(bytes) {
        if (await tryTake(bytes)) return
        while (!(await tryTakeAtCost(bytes)));
      },
    }
  }
}

function deviceOf(folder: string): number | undefined {
  return statSync(folder, { throwIfNoEntry: false })?.dev
}

const full = () => fail('disk_full', 'The disk is full.')
