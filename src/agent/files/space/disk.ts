// Space on a disk that servers share. Every writer reserves space here first. When there is none left, the oldest items
// in the trash of all servers on that disk are freed: only for bytes that have really arrived, only as many items as
// needed, and none if all of them would not be enough.
import { statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { fail } from '../../../contract/errors.ts'
import { createMutex, type Mutex } from '../../../kit/mutex.ts'
import { type FreeableTrash, type FreeingPlan, ignoreLeaving, planFreeing } from '../trash/trash-freeing.ts'

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
  requireFreeable(shortage: number): Promise<void>
  /** Takes what is free. False, and nothing is taken, when it is not. */
  tryTake(bytes: number): Promise<boolean>
  /** Takes it, at the cost of the trash where it has to be. Fails with `disk_full`. */
  take(bytes: number): Promise<void>
  /** After `shortage` with nothing awaited in between: takes what it found to be free. */
  takeFound(bytes: number): void
  /** This many bytes of what was taken are written, or not needed any more. */
  give(bytes: number): void
  /** Runs alone among those on this machine that decide which trash goes, with what frees it. */
  deciding: Mutex
}

/** All servers of one machine, on as many disks as they are. */
export function createDisks(trashes: () => TrashOnDisk[]): (serverId: string, folder: string) => ServerDisk {
  const deciding = createMutex()
  /** By device: taken and not written yet. */
  const taken = new Map<number, number>()

  return (serverId, folder) => {
    const device = statSync(folder).dev
    const onThisDisk = () =>
      trashes().flatMap(({ trash, folder: place }) => (deviceOf(place) === device ? [trash] : []))
    const add = (bytes: number) => taken.set(device, (taken.get(device) ?? 0) + bytes)

    async function shortage(bytes: number): Promise<number> {
      const { bavail, bsize } = await statfs(folder)
      return bytes + DISK_MARGIN_BYTES + (taken.get(device) ?? 0) - bavail * bsize
    }

    async function tryTake(bytes: number): Promise<boolean> {
      if ((await shortage(bytes)) > 0) return false
      add(bytes)
      return true
    }

    return {
      deciding,
      shortage,
      tryTake,
      takeFound: add,
      give: (bytes) => add(-bytes),
      async requireFreeable(short) {
        if (short > 0 && !(await planFreeing(onThisDisk(), { bytes: short, entries: 0 }))) throw full()
      },
      async take(bytes) {
        if (await tryTake(bytes)) return
        await deciding(async () => {
          const short = await shortage(bytes)
          if (short <= 0) return add(bytes)
          const plan = await planFreeing(onThisDisk(), { bytes: short, entries: 0 })
          if (!plan) throw full()
          await carryOut(plan, { reason: 'disk', requestedBy: serverId })
          if (!(await tryTake(bytes))) throw full()
        })
      },
    }
  }
}

export async function carryOut(plan: FreeingPlan, why: Parameters<FreeableTrash['free']>[1]): Promise<void> {
  for (const [trash, items] of plan) await trash.free(items, why).catch(ignoreLeaving)
}

function deviceOf(folder: string): number | undefined {
  return statSync(folder, { throwIfNoEntry: false })?.dev
}

const full = () => fail('disk_full', 'The disk is full.')
