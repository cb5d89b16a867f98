// Room in the making: what was set aside of the trash is being removed, and whoever needs the room waits until it is there.
// Trees of any size are removed here, so nobody who decides what goes has to wait for them.
import { isLeaving } from '../sandbox/errors.ts'
import type { FreeableTrash, FreeingPlan, Removal } from '../trash/trash-freeing.ts'
import { type Amount, atLeastNothing, minus, NOTHING, sum } from './amounts.ts'

export interface RoomMaking {
  /** What those who wait for their room still lack of it. It will be there: nothing more has to go for it. */
  lacking(): Amount
  /** Resolves when all of it is removed. `lack` is what the caller lacks until then. */
  remove(removals: readonly Removal[], lack: Amount): Promise<void>
  /** Something else is being removed that leaves room here. */
  watch(removal: Promise<void>): void
  /** Resolves when one of those under way has ended. Undefined where none is. */
  nextEnd(): Promise<void> | undefined
}

export function createRoomMaking(): RoomMaking {
  const underWay = new Set<Promise<void>>()
  let lacking = NOTHING

  function watch(removal: Promise<void>): void {
    const ended: Promise<void> = removal.catch(() => {}).finally(() => underWay.delete(ended))
    underWay.add(ended)
  }

  return {
    lacking: () => lacking,
    remove(removals, lack) {
      let left = lack
      lacking = sum(lacking, lack)
      const gain = (amount: Amount) => {
        const next = atLeastNothing(sum(left, minus(amount)))
        lacking = sum(lacking, sum(next, minus(left)))
        left = next
      }
      const done = removeAll(removals, gain).finally(() => gain(left))
      watch(done)
      return done
    },
    watch,
    nextEnd: () => (underWay.size === 0 ? undefined : Promise.race(underWay)),
  }
}

async function removeAll(removals: readonly Removal[], onRemoved: (amount: Amount) => void): Promise<void> {
  throwFirst(await Promise.allSettled(removals.map((remove) => remove(onRemoved))))
}

/** Of what `planAndHold` has answered. What it answers must be called: it records what goes, and removes it. */
export async function setAsidePlanned(
  plan: FreeingPlan,
  why: Parameters<FreeableTrash['setAside']>[1],
): Promise<Removal[]> {
  // All at once: every part of the plan is let go of, also where one fails.
  const results = await Promise.allSettled([...plan].map(([trash, items]) => trash.setAside(items, why)))
  const removals = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  return [...removals, async () => throwFirst(results)]
}

/** A server that is put aside meanwhile has nothing to give any more. */
function throwFirst(results: PromiseSettledResult<unknown>[]): void {
  for (const result of results) if (result.status === 'rejected' && !isLeaving(result.reason)) throw result.reason
}
