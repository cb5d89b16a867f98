// Builds the files of a restore beside the tree, many at a time: large ones in windows of a fixed number of bytes,
// small ones alongside.
import { createWorkGroup } from '../../../kit/waiting/work-group.ts'
import type { Directory } from '../../files/sandbox/directory.ts'
import type { KeyedEntry } from '../format/entries.ts'
import type { ManifestMeta } from '../format/manifest.ts'
import type { PackSource } from '../store/decode-pack.ts'
import { createBuilder, LARGE_BYTES } from './restore-build.ts'
import { type Staged, stagedFolder } from './restore-staged.ts'
import { SYNCED_ONE_BY_ONE, type SyncedName, syncEarly, syncFileSystem, syncStaged } from './restore-sync.ts'
import type { Places } from './spread.ts'
import { createStagedQueue } from './staged-queue.ts'

const WINDOW_FILES = 256
const WINDOW_BYTES = 32 * 1024 * 1024
/** Enough where nothing else is being built. */
const FIRST_WINDOW_BYTES = 8 * 1024 * 1024
/** While the blocks of one are decoded, the files of the next are made. */
const WINDOWS_AT_ONCE = 3
/**
 * Small files of several blocks are made by this thread, large ones decoded by the others: each waits for the other's company.
 * Those of a folder in which some are being made wait as well.
 */
const SMALL_WAITING = 8192
/** Where files are smaller than this on average, there is little to decode, and they would wait for large ones in vain. */
const WORTH_WAITING_BYTES = 16 * 1024
/** Each time there are so many more, the system begins to write them while others are made: less is left for the last sync. */
export const SYNCED_EARLY_FILES = 32_768

export interface Stager {
  /** Makes a folder for what belongs into one directory. */
  addFolder(): number
  /**
   * Builds the entry under a number in staging, or in a folder under its name. What it makes is there, and checked, once
   * `finish` has resolved.
   */
  add(entry: KeyedEntry, name: string, folder: number | undefined): number
  isFull(): boolean
  flush(): Promise<void>
  finish(): Promise<void>
  /** Waits until nothing is built any more. What was built stays. */
  abandon(): Promise<void>
  /** Once this resolves, everything staged survives a power failure. */
  sync(): Promise<void>
  /** How many were added. */
  count(): number
  /** What the files built so far take on the disk; holes take nothing. */
  diskBytes(): number
  /** What each was when it was made, once `finish` has resolved. */
  made(): Float64Array
}

export function createStager(
  source: PackSource & { serverId: string },
  staging: Directory,
  places: Places,
  { fileCount, sizeBytes }: Pick<ManifestMeta, 'fileCount' | 'sizeBytes'>,
  onStaged: (files: number, bytes: number) => void,
): Stager {
  const freeWaiting = sizeBytes > fileCount * WORTH_WAITING_BYTES ? SMALL_WAITING : WINDOW_FILES
  const windows = createWorkGroup(WINDOWS_AT_ONCE)
  const small = createStagedQueue()
  let large: Staged[] = []
  let largeBytes = 0
  let count = 0
  let folderCount = 0
  /** What to sync, while it is little. */
  const names: SyncedName[] = []
  const builder = createBuilder(source, staging)
  const earlySyncs = createWorkGroup(1)
  let unsynced = 0

  function noteUnsynced(files: number): void {
    unsynced += files
    if (unsynced < SYNCED_EARLY_FILES || earlySyncs.isFull()) return
    unsynced = 0
    earlySyncs.start(syncEarly(staging))
  }

  /** Resolves when another may be started. */
  async function start(entries: Staged[], onBuilt?: () => void): Promise<void> {
    const building = builder.build(entries).finally(onBuilt)
    const built = building.then(({ files, bytes }) => {
      noteUnsynced(files)
      places.noteMade(files, bytes)
      onStaged(files, bytes)
    })
    windows.start(built)
    await windows.room()
    if (windows.hasFailed()) await windows.drain()
  }

  const isLargeFull = () => largeBytes >= (windows.size > 0 ? WINDOW_BYTES : FIRST_WINDOW_BYTES)

  const isSmallFull = () => small.free >= freeWaiting || small.length >= SMALL_WAITING

  function startSmall(): Promise<void> {
    const window = small.take(WINDOW_FILES)
    return start(window, () => small.built(window))
  }

  async function startLarge(): Promise<void> {
    const window = large
    large = []
    largeBytes = 0
    await start(window)
    if (small.length > 0) await startSmall()
  }

  function noteName({ folder, name }: SyncedName): void {
    if (names.length <= SYNCED_ONE_BY_ONE) names.push({ folder, name })
  }

  return {
    addFolder() {
      const name = stagedFolder(folderCount)
      places.make(staging, name)
      noteName({ folder: undefined, name })
      return folderCount++
    },
    add(entry, name, folder) {
      const staged = { entry, number: count, folder, name: folder === undefined ? String(count) : name }
      noteName(staged)
      if (entry.sizeBytes < LARGE_BYTES) small.add(staged)
      else {
        large.push(staged)
        largeBytes += entry.sizeBytes
      }
      return count++
    },
    isFull: () => isLargeFull() || isSmallFull(),
    async flush() {
      if (isLargeFull()) await startLarge()
      while (isSmallFull()) await startSmall()
    },
    async finish() {
      if (large.length > 0) await startLarge()
      while (small.length > 0) await startSmall()
      await windows.drain()
    },
    async abandon() {
      await windows.ended()
      await earlySyncs.ended()
    },
    count: () => count,
    diskBytes: builder.diskBytes,
    made: () => builder.made(count),
    async sync() {
      await earlySyncs.drain()
      if (names.length > SYNCED_ONE_BY_ONE) await syncFileSystem(staging)
      else await syncStaged(staging, names)
    },
  }
}
