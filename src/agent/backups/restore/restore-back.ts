// Undoes what a committed restore has done so far. Restored files go back to staging, so that forward can still be
// chosen, or to the trash if they were changed since; displaced files come back from the trash. Anything else that is
// newer stays where it is, or is in the trash. Must be idempotent, from any point at which an earlier run ended in
// either direction.
import { lstatSync, type Stats } from 'node:fs'
import { hasCode } from '../../../kit/files/errno.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import {
  addressOf,
  type Directory,
  isSameFile,
  renameAt,
  rmdirAt,
  statsIfThere,
  unlinkAt,
} from '../../files/sandbox/directory.ts'
import { type Attributes, setAttributes } from './restore-attributes.ts'
import { lstatIfThere, moveFromSlot } from './restore-conflicts.ts'
import { isTakenBack, markTakenBack, type Operations, operationsOf, readMade, sectionsOf } from './restore-journal.ts'
import { openIfThere } from './restore-parents.ts'
import { openStagedFolders } from './restore-staged.ts'
import { eachStep, StepFailed, type Swap, slotOf } from './restore-steps.ts'

/** What Node cannot set more exactly. */
const TIME_SLACK_NS = 1_000n

export async function rollBack(swap: Swap): Promise<void> {
  const { staging, way } = swap
  if (!isTakenBack(staging)) {
    // Links are made after everything has been placed: where something is staged still, or again, there are none.
    if (!(await isAnythingStaged(swap))) await each(swap, 'link', (operation) => unlinkAgain(swap, operation))
    await takeBackPlaced(swap)
    await markTakenBack(staging)
  }
  await removeMade(swap)
  const options = { way, share: swap.target.sandbox.share, allowsDirectory: false, refresh: () => {} }
  await eachStep(operationsOf(staging, 'displace'), (operation) => bringBack(swap, operation), options)
  await way.giveBack()
  await each(swap, 'meta', (operation) => setBack(swap, operation))
}

type Async = 'link' | 'place' | 'inside' | 'meta'

async function each<S extends Async>(
  { staging, head, target }: Swap,
  section: S,
  step: (operation: Operations[S]) => Promise<void> | void,
): Promise<void> {
  if (!sectionsOf(head).includes(section)) return
  const turn = createTurns(target.sandbox.share)
  for (const operations of operationsOf(staging, section)) {
    for (const operation of operations) {
      try {
        await step(operation)
      } catch (error) {
        throw new StepFailed(operation.path, error)
      }
      if (turn.due()) await turn.take()
    }
  }
}

async function isAnythingStaged(swap: Swap): Promise<boolean> {
  const { staging, head } = swap
  for (let staged = 0; staged < head.stagedCount; staged++) if (statsIfThere(staging, String(staged))) return true
  using folders = openStagedFolders(staging)
  let isInside = false
  await each(swap, 'inside', (operation) => {
    isInside ||= folders.find(operation) !== undefined
  })
  return isInside
}

async function unlinkAgain({ target: { sandbox }, way }: Swap, { path, to }: Operations['link']): Promise<void> {
  const there = lstatIfThere(sandbox, path)
  if (!there) return
  if (lstatIfThere(sandbox, to)?.ino !== there.ino) return await way.clear(path, { allowsDirectory: false })
  using place = sandbox.openPlace(path)
  unlinkAt(place.parent, place.name)
}

async function takeBackPlaced(swap: Swap): Promise<void> {
  const { staging, target, way } = swap
  const made = readMade(staging)
  using folders = openStagedFolders(staging)
  const takeBack = async (operation: Operations['place' | 'inside']) => {
    const { path, staged } = operation
    {
      using place = openIfThere(target.sandbox, path)
      const there = place && lookAt(place.parent, place.name)
      if (place && there) {
        const from = folders.find(operation)
        if (from && isSameFile(from.parent, from.name, place.parent, place.name)) unlinkAt(place.parent, place.name)
        else if (!from && there.ino === made.ino(staged)) renameAt(place.parent, place.name, staging, String(staged))
        // Placed, and replaced by somebody since.
        else if (!from) await way.clear(path, { allowsDirectory: false })
      }
    }
    const back = folders.find(operation)
    const now = back && lookAt(back.parent, back.name)
    if (now && !made.isAsMade(staged, now)) await way.discard(back, path)
  }
  await each(swap, 'place', takeBack)
  await each(swap, 'inside', takeBack)
}

function lookAt(parent: Directory, name: string): Stats | undefined {
  return lstatSync(addressOf(parent, name), { throwIfNoEntry: false })
}

/** Deepest first. One that holds something newer stays. */
async function removeMade({ staging, target: { sandbox } }: Swap): Promise<void> {
  const made = [...operationsOf(staging, 'mkdir')].flat().reverse()
  for (const { path } of made) {
    using place = openIfThere(sandbox, path)
    if (!place) continue
    try {
      rmdirAt(place.parent, place.name)
    } catch (error) {
      if (!hasCode(error, 'ENOTEMPTY', 'EEXIST', 'ENOENT', 'ENOTDIR')) throw new StepFailed(path, error)
    }
  }
}

function bringBack({ head, target: { sandbox }, openTrash }: Swap, { path, item }: Operations['displace']): void {
  const { batch, slot } = slotOf(head, item)
  using folder = openTrash(batch)
  if (!statsIfThere(folder, slot)) return
  using place = sandbox.openNewPlace(path, { anyName: true })
  moveFromSlot(folder, slot, place.parent, place.name)
}

function setBack({ target: { sandbox } }: Swap, { path, before, ...set }: Operations['meta']): void {
  if (before === null) return
  if (path.length === 0) {
    using top = sandbox.openDirectory([])
    setAttributes(`${top.address}/.`, before)
    return
  }
  using place = openIfThere(sandbox, path)
  const now = place && statsIfThere(place.parent, place.name)
  // A file that was written since has times of its own.
  if (place && now && (now.isDirectory() || isAsSet(now.mtimeNs, set)))
    setAttributes(addressOf(place.parent, place.name), before)
}

function isAsSet(mtimeNs: bigint, { mtime }: Attributes): boolean {
  const gap = mtimeNs - BigInt(mtime)
  return gap < TIME_SLACK_NS && gap > -TIME_SLACK_NS
}
