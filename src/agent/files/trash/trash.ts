// Deleted and replaced files, kept for a day so that a wrong click can be undone. The trash lies beside the server's
// files on the same file system: putting a tree of any size into it is one rename.
import { fail } from '../../../contract/errors.ts'
import { newId, timeOfId } from '../../../kit/ids.ts'
import { createTurns, type Turns } from '../../../kit/waiting/turns.ts'
import { placedWithParents } from '../changes/new-parents.ts'
import { inodeOf } from '../changes/probes.ts'
import { moveToFreeName } from '../changes/replace.ts'
import { freeNames } from '../free-names.ts'
import { openIfStillThere } from '../sandbox/descent.ts'
import {
  type Directory,
  fsyncDirectory,
  lstatAt,
  openChild,
  openOwnFolder,
  renameAt,
  rmdirAt,
  statsIfThere,
} from '../sandbox/directory.ts'
import { explained, explainedAsync } from '../sandbox/errors.ts'
import { splitPath } from '../sandbox/paths.ts'
import { removeTree } from '../sandbox/remove-tree.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { Staging } from '../sandbox/staging.ts'
import { type Amount, diskBytes, minus } from '../space/amounts.ts'
import { batchNames, hasItems, namesIn, newestBatches } from './trash-batches.ts'
import {
  createTrashMeasure,
  describeFreeing,
  FREEING,
  type FreeableTrash,
  type FreedTrash,
  moveAside,
  type Removal,
  withoutHeld,
} from './trash-freeing.ts'
import {
  dropRecord,
  itemId,
  parseItemId,
  readRecord,
  sizeOfBatch,
  type TrashBatch,
  type TrashRecord,
  writeBatch,
} from './trash-records.ts'
import { isUnreadable, readOrRecover } from './unreadable-records.ts'

const EMPTYING = 'emptying-'

export interface Trash extends FreeableTrash {
  /**
   * Writes down what is about to be moved into the trash; the caller then moves each item into its slot. Until the batch
   * is disposed of, nothing empties it. `id` is for whoever has to name the batch beforehand.
   */
  prepare(reason: TrashRecord['reason'], items: TrashRecord['items'], id?: string): Promise<TrashBatch>
  /** Where an item was, its inode, and whether that has names elsewhere. */
  find(id: string): { path: string; inode: string; hasOtherNames: boolean }
  /**
   * For an undo under way, until it is disposed of: nobody frees or empties the item, nor what was deleted with it. Fails
   * with `not_found` where the item is on its way out already.
   */
  keep(id: string): Disposable
  /** Answers the path that the item has now. `takeRoom` is for the directories that are missing on the way to it. */
  restore(id: string, takeRoom: () => Promise<void>): Promise<string>
  /** Empties what is older than the time that things are kept. */
  expire(signal?: AbortSignal): Promise<void>
  /** Empties all of it. Answers how many bytes that freed. */
  emptyAll(): Promise<number>
  /** The newest deletions, newest first: those that `emptyAll` begins with. */
  newest(count: number): Promise<string[]>
  /** Finishes emptying and freeing what a process that died had begun on. */
  recover(signal?: AbortSignal): Promise<void>
}

export function createTrash(deps: {
  folderPath: string
  files: Sandbox
  staging: Staging
  keepMs: number
  now: () => number
  /** This much came into the trash without having been a file before, or went, which is less than nothing then. */
  onChanged: (amount: Amount) => void
  /** Whether a restore may still have to bring back what the batch holds. */
  isHeld: (batch: string) => boolean
  /** Held while something is taken out for good and told of. */
  share: () => Disposable
  /** Resolves once it is durable that these items went to make room. Nothing of them is removed before that. */
  recordFreed: (freed: FreedTrash) => Promise<void>
  /** These items have no record that can be read: they are kept. */
  onUnreadable: (folder: string) => void
}): Trash {
  const open = () => openOwnFolder(deps.folderPath)

  /** Whoever frees space must not take away what somebody is about to move things into. */
  const filling = new Set<string>()
  const isFilled = (batch: string) => !filling.has(batch) && !deps.isHeld(batch)
  /** What is being freed now is not for `recover`. */
  const freeing = new Set<string>()
  const held = new Set<string>()
  /** Items that an undo is taking back, which are held too; each resolves when that undo has ended. */
  const restoring = new Map<string, Promise<void>>()
  const sizes = createTrashMeasure()

  const turns = (signal?: AbortSignal) => createTurns(deps.files.share, signal)

  async function filledBatches(trash: Directory, turn: Turns, isWanted = (_batch: string) => true): Promise<string[]> {
    const found: string[] = []
    for await (const batch of batchNames(trash, turn)) if (isFilled(batch) && isWanted(batch)) found.push(batch)
    return found.sort()
  }

  const reported = new Set<string>()
  /** Whether it was told of, now or before, that the folder holds items whose record cannot be read. */
  function isKeptUnreadable(trash: Directory, name: string): boolean {
    const opened = openIfStillThere(trash, name)
    if (!opened) return false
    using folder = opened
    if (!isUnreadable(folder)) return false
    if (!reported.has(name)) deps.onUnreadable(name)
    reported.add(name)
    return true
  }

  /** Of an undo from this batch. One that has the folder open would bring back half of what is being removed. */
  function endOfUndo(batch: string): Promise<void> | undefined {
    for (const [id, end] of restoring) if (parseItemId(id)?.batch === batch) return end
    return undefined
  }

  /** From the rename on the items are out of sight, so that nobody can take back half of one. */
  async function empty(trash: Directory, batch: string, isRelaxed: boolean, signal?: AbortSignal): Promise<number> {
    if (statsIfThere(trash, batch) === undefined) return 0
    sizes.forget(batch)
    renameAt(trash, batch, trash, `${EMPTYING}${batch}`)
    let freed = 0
    const onRemoved = ({ bytes }: Amount) => {
      freed += bytes
    }
    await removeEmptying(trash, `${EMPTYING}${batch}`, { isRelaxed, onRemoved, ...(signal ? { signal } : {}) })
    return freed
  }

  async function removeEmptying(
    trash: Directory,
    name: string,
    { onRemoved, ...options }: { isRelaxed: boolean; signal?: AbortSignal; onRemoved?: (amount: Amount) => void },
  ): Promise<void> {
    await removeTree(trash, name, {
      share: deps.files.share,
      ...options,
      onRemoved: (stats) => {
        const amount = { bytes: stats.isDirectory() || stats.nlink === 1n ? diskBytes(stats) : 0, entries: 1 }
        deps.onChanged(minus(amount))
        onRemoved?.(amount)
      },
    })
  }

  /** A server that is put aside has told of everything that it lost before: what is told takes its lock. */
  async function tellFreed(trash: Directory, name: string): Promise<string> {
    const freed = await describeFreeing(trash, name, turns())
    if (freed) await deps.recordFreed(freed)
    const emptying = `${EMPTYING}${name.slice(FREEING.length)}`
    renameAt(trash, name, trash, emptying)
    return emptying
  }

  async function setAside(trash: Directory, ...[items, why]: Parameters<Trash['setAside']>): Promise<string> {
    const touched = new Set(items.map(({ batch }) => batch))
    const name = await moveAside(trash, items, why, { now: deps.now(), underWay: freeing })
    try {
      for (const batch of touched) sizes.forget(batch)
      countBatch(trash, name)
      for (const batch of touched) dropIfEmptied(trash, batch, deps.onChanged)
      return name
    } catch (error) {
      freeing.delete(name)
      throw error
    }
  }

  async function tellAndRemove(
    trash: Directory,
    name: string,
    shared: Disposable,
    onRemoved?: (amount: Amount) => void,
  ) {
    using _trash = trash
    const emptying = await tellSetAside(trash, name, shared).finally(() => freeing.delete(name))
    await removeEmptying(trash, emptying, { isRelaxed: false, ...(onRemoved ? { onRemoved } : {}) })
  }

  async function tellSetAside(trash: Directory, name: string, shared: Disposable): Promise<string> {
    using _shared = shared
    return await tellFreed(trash, name)
  }

  function countBatch(trash: Directory, name: string): void {
    using folder = openChild(trash, name)
    deps.onChanged(sizeOfBatch(folder))
  }

  return {
    async prepare(reason, items, id = newId('trs', deps.now())) {
      using trash = open()
      const record: TrashRecord = { version: 1, reason, deletedAt: deps.now(), items }
      const batch = await explainedAsync('trash', () => writeBatch(trash, id, record, filling))
      deps.onChanged(sizeOfBatch(batch.folder))
      return {
        ...batch,
        [Symbol.dispose]() {
          filling.delete(batch.id)
          batch[Symbol.dispose]()
        },
      }
    },

    find(id) {
      using trash = open()
      const { wanted, item, folder: opened } = openItem(trash, id)
      using folder = opened
      const stats = lstatAt(folder, wanted.slot)
      return { path: item.path, inode: inodeOf(stats), hasOtherNames: !stats.isDirectory() && stats.nlink > 1n }
    },

    keep(id) {
      if (held.has(id)) throw notInTrash()
      const { promise, resolve } = Promise.withResolvers<void>()
      held.add(id)
      restoring.set(id, promise)
      return {
        [Symbol.dispose]() {
          held.delete(id)
          restoring.delete(id)
          resolve()
        },
      }
    },

    async restore(id, takeRoom) {
      using trash = open()
      const { wanted, item, folder: opened } = openItem(trash, id)
      using folder = opened
      const source = { folder, name: wanted.slot }
      const segments = splitPath(item.path)
      const isPlaced = await explainedAsync(item.path, () =>
        placedWithParents(deps, source, segments, { anyName: true }),
      )
      if (!isPlaced) await takeRoom()
      using place = deps.files.openNewPlace(segments, { anyName: true })
      const names = freeNames(place.name, item.kind === 'directory', 'restored', true)
      const { path } = isPlaced ? place : moveToFreeName(source, place.parent, names)
      sizes.forget(wanted.batch)
      await fsyncDirectory(place.parent)
      await fsyncDirectory(folder)
      if (isFilled(wanted.batch) && !hasItems(folder)) tidy(trash, folder, wanted.batch, deps.onChanged)
      return path
    },

    async expire(signal) {
      using trash = open()
      const turn = turns(signal)
      // By their names first: there may be many, and looking into each is not free.
      const isOld = (batch: string) => (timeOfId('trs', batch) ?? 0) + deps.keepMs <= deps.now()
      for (const batch of await filledBatches(trash, turn, isOld)) {
        if (turn.due()) await turn.take()
        if (endOfUndo(batch) || deletedAt(trash, batch) + deps.keepMs > deps.now()) continue
        if (isKeptUnreadable(trash, batch)) continue
        await empty(trash, batch, true, signal)
      }
    },

    async emptyAll() {
      using trash = open()
      let freed = 0
      for (const batch of (await filledBatches(trash, turns())).reverse()) {
        for (let end = endOfUndo(batch); end; end = endOfUndo(batch)) await end
        freed += await empty(trash, batch, false)
      }
      return freed
    },

    async batches() {
      using trash = open()
      return await filledBatches(trash, turns())
    },
    async newest(count) {
      using trash = open()
      return await newestBatches(trash, turns(), count, isFilled)
    },
    async measure(batch) {
      using trash = open()
      const measured = await sizes.measure(trash, batch, turns())
      return held.size === 0 ? measured : withoutHeld(measured, (index) => held.has(itemId(batch, index)))
    },
    async hasRecordsBeyond(bytes) {
      using trash = open()
      let total = 0
      for await (const batch of batchNames(trash, turns())) {
        const opened = openIfStillThere(trash, batch)
        if (!opened) continue
        using folder = opened
        total += sizeOfBatch(folder).bytes
        if (total > bytes) return true
      }
      return false
    },
    held,
    async setAside(items, why): Promise<Removal> {
      try {
        using opened = new DisposableStack()
        const trash = opened.use(open())
        const shared = opened.use(deps.share())
        const name = await setAside(trash, items, why)
        opened.move()
        return (onRemoved) => tellAndRemove(trash, name, shared, onRemoved)
      } finally {
        for (const { batch, index } of items) held.delete(itemId(batch, index))
      }
    },

    async recover(signal) {
      using trash = open()
      const isLeft = (name: string) => name.startsWith(EMPTYING) || name.startsWith(FREEING)
      for (const name of await Array.fromAsync(namesIn(trash, turns(signal), isLeft))) {
        const isOurs = name.startsWith(EMPTYING) || (!freeing.has(name) && statsIfThere(trash, name))
        if (!isOurs || (name.startsWith(FREEING) && isKeptUnreadable(trash, name))) continue
        const emptying = name.startsWith(EMPTYING) ? name : await tellSetAside(trash, name, deps.share())
        await removeEmptying(trash, emptying, { isRelaxed: true, ...(signal ? { signal } : {}) })
      }
    },
  }
}

/** The caller closes `folder`. */
function openItem(trash: Directory, id: string) {
  const wanted = parseItemId(id)
  if (!wanted || !statsIfThere(trash, wanted.batch)) throw notInTrash()
  using held = new DisposableStack()
  const folder = held.use(explained('trash', () => openChild(trash, wanted.batch)))
  const record = readOrRecover(folder, wanted.batch)
  const item = statsIfThere(folder, wanted.slot) && record?.items[wanted.index]
  if (!item) throw notInTrash()
  held.move()
  return { wanted, item, folder }
}

/** Later than any time where somebody took all of it back meanwhile. */
function deletedAt(trash: Directory, batch: string): number {
  if (!statsIfThere(trash, batch)) return Number.POSITIVE_INFINITY
  using folder = openChild(trash, batch)
  return readRecord(folder)?.deletedAt ?? 0
}

/** What was taken back is in its place. An empty batch that could not be dropped shows nothing, and goes when it expires. */
function tidy(trash: Directory, folder: Directory, batch: string, onChanged: (amount: Amount) => void): void {
  try {
    dropEmptied(trash, folder, batch, onChanged)
  } catch {
    // Said of the next change that meets the same disk.
  }
}

/** Whoever took another of its items back at the same time may have done it already. */
function dropEmptied(trash: Directory, folder: Directory, batch: string, onChanged: (amount: Amount) => void): void {
  const size = sizeOfBatch(folder)
  dropRecord(folder)
  if (!statsIfThere(trash, batch)) return
  rmdirAt(trash, batch)
  onChanged(minus(size))
}

function dropIfEmptied(trash: Directory, batch: string, onChanged: (amount: Amount) => void): void {
  const opened = openIfStillThere(trash, batch)
  if (!opened) return
  using folder = opened
  if (readRecord(folder) && !hasItems(folder)) dropEmptied(trash, folder, batch, onChanged)
}

function notInTrash() {
  return fail('not_found', 'There is no such item in the trash.')
}
