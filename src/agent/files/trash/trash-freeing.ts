// Makes room by freeing trash: the oldest items first, no more than needed, and none if all of them would not be
// enough. Each removal is recorded, even if a crash comes between the removal and its entry.

import { newId } from '../../../kit/ids.ts'
import { createTurns, type Turns } from '../../../kit/waiting/turns.ts'
import { openIfStillThere } from '../sandbox/descent.ts'
import { type Directory, fsyncDirectory, openChild, renameAt, statsIfThere } from '../sandbox/directory.ts'
import { isLeaving } from '../sandbox/errors.ts'
import { openWalk } from '../sandbox/walk.ts'
import { type Amount, diskBytes, minus, NOTHING, sum } from '../space/amounts.ts'
import { presentItems } from './trash-batches.ts'
import {
  type FreeingRecord,
  itemId,
  readRecord,
  sizeOfBatch,
  slotName,
  type TrashRecord,
  writeBatch,
} from './trash-records.ts'

export const FREEING = 'freeing-'
/** Numbers of items, each a few bytes: enough for any trash that is asked for again and again. */
const MEASURED_MAX = 100_000
const PATHS_RECORDED = 100

export interface TrashedItem {
  batch: string
  index: number
  /** What the disk gains when it goes: no bytes for a file that has another name elsewhere. */
  bytes: number
  entries: number
  /** Of that, what the batch itself takes, which goes with the last of its items. */
  own?: Amount
}

/** One line of the activity. */
export interface FreedTrash {
  /** The same for the same items, however often it is told. */
  id: string
  reason: FreeingRecord['reason']
  requestedBy: string
  freedBytes: number
  items: number
  /** Where the first of them were, before they were deleted or replaced. */
  paths: string[]
}

export interface FreeableTrash {
  /** Oldest first; ids sort by the time of the deletion, also among servers. */
  batches(): Promise<string[]>
  /** Without what is held. */
  measure(batch: string): Promise<readonly TrashedItem[]>
  /** Whether what the batches take without their items is more than this. */
  hasRecordsBeyond(bytes: number): Promise<boolean>
  /** Ids of items that somebody has planned to set aside, or is taking back. */
  readonly held: Set<string>
  /**
   * Takes items that are held out of the trash by renames, however large they are, and lets go of them. What it answers must
   * be called: it records them and then removes them. After a crash the next start does both.
   */
  setAside(items: readonly TrashedItem[], why: Pick<FreeingRecord, 'reason' | 'requestedBy'>): Promise<Removal>
}

/** Resolves when all of it is gone; `onRemoved` hears of every piece. */
export type Removal = (onRemoved?: (amount: Amount) => void) => Promise<void>

export type FreeingPlan = Map<FreeableTrash, TrashedItem[]>

/** The share of the event loop of whoever decides what goes, of all servers together. */
const PLANNING = 'making room'

/** Whether an item may go at all. */
export type MayFree = (item: TrashedItem) => Promise<boolean>

/** The oldest items that are that much together; undefined where all of them are less. Frees nothing. */
export async function planFreeing(trashes: Iterable<FreeableTrash>, wanted: Amount): Promise<FreeingPlan | undefined> {
  const { plan, isEnough } = await planFreeingUpTo(trashes, wanted)
  return isEnough ? plan : undefined
}

/** As `planFreeing`; what is planned is nobody else's until it is set aside. */
export async function planAndHold(trashes: Iterable<FreeableTrash>, wanted: Amount): Promise<FreeingPlan | undefined> {
  for (;;) {
    const plan = await planFreeing(trashes, wanted)
    if (!plan || tryHold(plan)) return plan
  }
}

/** False, and nothing is held, where somebody was quicker with a part of it. */
export function tryHold(plan: FreeingPlan): boolean {
  const ids = [...plan].flatMap(([{ held }, items]) =>
    items.map(({ batch, index }) => ({ held, id: itemId(batch, index) })),
  )
  if (ids.some(({ held, id }) => held.has(id))) return false
  for (const { held, id } of ids) held.add(id)
  return true
}

/** As `planFreeing`, but with what there is where all that may go is less. */
export async function planFreeingUpTo(
  trashes: Iterable<FreeableTrash>,
  { bytes, entries }: Amount,
  mayFree: MayFree = async () => true,
): Promise<{ plan: FreeingPlan; isEnough: boolean }> {
  const owners = new Map<string, FreeableTrash>()
  for (const trash of trashes) for (const batch of await trash.batches().catch(ignoreLeaving)) owners.set(batch, trash)
  const turn = createTurns(PLANNING)
  const plan: FreeingPlan = new Map()
  let [bytesLeft, entriesLeft] = [bytes, entries]
  for (const batch of [...owners.keys()].sort()) {
    const trash = owners.get(batch) as FreeableTrash
    const items = plan.get(trash) ?? []
    /** Of this batch: what takes nothing that is wanted goes only where the batch itself has to go. */
    const passedOver: TrashedItem[] = []
    let isKept = false
    for (const item of await trash.measure(batch).catch(ignoreLeaving)) {
      if (turn.due()) await turn.take()
      if (bytesLeft <= 0 && entriesLeft <= 0) return { plan, isEnough: true }
      const mayGo = await mayFree(item)
      isKept ||= !mayGo
      const { own = NOTHING } = item
      const alone = sum(item, minus(own))
      const isEnoughAlone = bytesLeft <= alone.bytes && entriesLeft <= alone.entries
      const takesBatch = item.own !== undefined && !isKept && !isEnoughAlone
      const gain = takesBatch ? passedOver.reduce<Amount>(sum, item) : alone
      const helps = (bytesLeft > 0 && gain.bytes > 0) || (entriesLeft > 0 && gain.entries > 0)
      if (!mayGo) continue
      if (!helps) {
        passedOver.push(item)
        continue
      }
      if (takesBatch) for (const other of passedOver) items.push(other)
      items.push(item)
      plan.set(trash, items)
      bytesLeft -= gain.bytes
      entriesLeft -= gain.entries
    }
  }
  return { plan, isEnough: bytesLeft <= 0 && entriesLeft <= 0 }
}

/** A server that is put aside meanwhile has nothing to give any more. */
export function ignoreLeaving(error: unknown): [] {
  if (isLeaving(error)) return []
  throw error
}

/** What the batches of one trash hold. Asked for often by whoever is refused often, so it is not counted anew each time. */
export function createTrashMeasure() {
  const known = new Map<string, readonly TrashedItem[]>()
  let count = 0
  let forgotten = 0
  return {
    forget(batch: string): void {
      forgotten++
      count -= known.get(batch)?.length ?? 0
      known.delete(batch)
    },
    async measure(trash: Directory, batch: string, turn: Turns): Promise<readonly TrashedItem[]> {
      const found = known.get(batch)
      if (found) return found
      const before = forgotten
      const { items, isFinal } = await measureBatch(trash, batch, turn)
      // Something may have left it while it was measured.
      if (!isFinal || forgotten !== before) return items
      if (count + items.length > MEASURED_MAX) {
        known.clear()
        count = 0
      }
      known.set(batch, items)
      count += items.length
      return items
    },
  }
}

/** While an item of it stays, so does the batch itself. */
export function withoutHeld(items: readonly TrashedItem[], isHeld: (index: number) => boolean): TrashedItem[] {
  const free = items.filter(({ index }) => !isHeld(index))
  if (free.length === items.length) return free
  return free.map(({ own = NOTHING, ...item }) => ({ ...item, ...sum(item, minus(own)) }))
}

/** Not final where a file has another name: it may lose that one, and take space here alone. */
async function measureBatch(
  trash: Directory,
  batch: string,
  turn: Turns,
): Promise<{ items: TrashedItem[]; isFinal: boolean }> {
  const opened = openIfStillThere(trash, batch)
  if (!opened) return { items: [], isFinal: false }
  using folder = opened
  const record = readRecord(folder)
  const items: TrashedItem[] = []
  let isFinal = true
  for await (const { index } of presentItems(folder, record ?? { items: [] }, turn)) {
    const measured = await measureItem(folder, slotName(index), turn)
    isFinal &&= measured.isFinal
    items.push({ batch, index, bytes: measured.bytes, entries: measured.entries })
  }
  const own = sizeOfBatch(folder)
  const last = items.at(-1)
  if (last) Object.assign(last, sum(last, own), { own })
  return { items, isFinal }
}

async function measureItem(folder: Directory, slot: string, turn: Turns): Promise<Amount & { isFinal: boolean }> {
  const own = statsIfThere(folder, slot)
  if (!own) return { bytes: 0, entries: 0, isFinal: false }
  if (!own.isDirectory())
    return own.nlink > 1n
      ? { bytes: 0, entries: 1, isFinal: false }
      : { bytes: diskBytes(own), entries: 1, isFinal: true }
  const opened = openIfStillThere(folder, slot)
  if (!opened) return { bytes: 0, entries: 0, isFinal: false }
  using directory = opened
  let bytes = diskBytes(own)
  let entries = 1
  let isFinal = true
  using tree = openWalk(directory, { anyDepth: true })
  for (let found = tree.next(); found; found = tree.next()) {
    if (turn.due()) await turn.take()
    const { stats } = found
    entries++
    if (!stats.isDirectory() && stats.nlink > 1n) isFinal = false
    else bytes += diskBytes(stats)
  }
  return { bytes, entries, isFinal }
}

/** Takes the items out of the trash, into a folder that says what they are and why they go. Answers its name. */
export async function moveAside(
  trash: Directory,
  items: readonly TrashedItem[],
  why: Pick<FreeingRecord, 'reason' | 'requestedBy'>,
  { now, underWay }: { now: number; underWay: Set<string> },
): Promise<string> {
  const byBatch = Map.groupBy(items, ({ batch }) => batch)
  const entries = [...byBatch].flatMap(([batch, group]) => entriesOf(trash, batch, group))
  const record = { version: 1, ...why, deletedAt: now, items: entries } as const
  using aside = await writeBatch(trash, `${FREEING}${newId('trs', now)}`, record, underWay)
  try {
    let slot = 0
    for (const [batch, group] of byBatch) {
      const opened = openIfStillThere(trash, batch)
      if (opened) {
        using folder = opened
        // Somebody may have taken it back out of the trash meanwhile.
        for (const [at, { index }] of group.entries())
          if (statsIfThere(folder, slotName(index)))
            renameAt(folder, slotName(index), aside.folder, slotName(slot + at))
        await fsyncDirectory(folder)
      }
      slot += group.length
    }
    await fsyncDirectory(aside.folder)
  } catch (error) {
    underWay.delete(aside.id)
    throw error
  }
  return aside.id
}

/** In the order of `items`. Of a batch that is gone by now none will be moved, and none needs a name. */
function entriesOf(trash: Directory, batch: string, items: readonly TrashedItem[]): TrashRecord['items'] {
  const opened = openIfStillThere(trash, batch)
  using folder = opened
  const record = folder && readRecord(folder)
  return items.map(({ index }) => record?.items[index] ?? { path: '/', kind: 'other' })
}

/** What was set aside, as its entry tells of it; undefined where nothing was moved there. */
export async function describeFreeing(trash: Directory, name: string, turn: Turns): Promise<FreedTrash | undefined> {
  using folder = openChild(trash, name)
  const record = readRecord<FreeingRecord>(folder)
  const paths: string[] = []
  let [items, freedBytes] = [0, 0]
  for await (const { index, path } of presentItems(folder, record ?? { items: [] }, turn)) {
    freedBytes += (await measureItem(folder, slotName(index), turn)).bytes
    if (items++ < PATHS_RECORDED) paths.push(path)
  }
  if (!record || items === 0) return undefined
  return {
    id: name.slice(FREEING.length),
    reason: record.reason,
    requestedBy: record.requestedBy,
    freedBytes,
    items,
    paths,
  }
}
