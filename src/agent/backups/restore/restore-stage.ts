// Builds files beside the tree from the blocks of a backup. Every block is checked against its name as it is decoded, and
// nothing that fails is ever put in place.

import { execFile } from 'node:child_process'
import { fstatSync, fsync, ftruncateSync, lstatSync, symlinkSync } from 'node:fs'
import { promisify } from 'node:util'
import { type DirectTarget, openDirect } from '../../../blobs/direct-io.ts'
import { fail } from '../../../contract/errors.ts'
import { type Descriptor, openDescriptor } from '../../../kit/descriptor.ts'
import { hasCode } from '../../../kit/errno.ts'
import { createWorkGroup, forEachAtOnce } from '../../../kit/work-group.ts'
import { addressOf, createDescriptorAt, type Directory, fsyncDirectory } from '../../files/sandbox/directory.ts'
import { nameToDisk } from '../../files/sandbox/names.ts'
import type { Sandbox } from '../../files/sandbox/sandbox.ts'
import { spaceOf } from '../../files/space/amounts.ts'
import { eachBlock } from '../format/block-runs.ts'
import type { KeyedEntry } from '../format/entries.ts'
import type { ManifestMeta } from '../format/manifest.ts'
import type { DamagedBlock, Repository } from '../store/repository.ts'
import { OPEN_FILE } from '../tree/unchanged.ts'
import { decodeJobs, type WantedBlock } from '../workers/decode-jobs.ts'
import type { Pool } from '../workers/pool.ts'
import { attributesOf, MADE_MODE, setAttributes, setMadeAttributes } from './restore-attributes.ts'
import { SYNCED_ONE_BY_ONE } from './restore-forward.ts'
import { createMadeList, isGone } from './restore-journal.ts'

const WINDOW_FILES = 256
const WINDOW_BYTES = 32 * 1024 * 1024
/** Enough where nothing else is being built. */
const FIRST_WINDOW_BYTES = 8 * 1024 * 1024
/** While the blocks of one are decoded, the files of the next are made. */
const WINDOWS_AT_ONCE = 3
const LARGE_BYTES = 1024 * 1024
/** Making small files is this thread's work, decoding large ones the others': so they wait for each other's company. */
const SMALL_WAITING = 8192
/** A file system makes what comes together durable in one go. */
const SYNCED_TOGETHER = 16
/** Where files are smaller than this on average, there is little to decode, and they would wait in vain. */
const WORTH_WAITING_BYTES = 16 * 1024

interface Staged {
  entry: KeyedEntry
  number: number
}

export interface Stager {
  /** Builds the entry under a number in staging. What it makes is there, and checked, once `finish` has resolved. */
  add(entry: KeyedEntry): number
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
  { repository, pool }: { repository: Repository; pool: Pool },
  staging: Directory,
  { fileCount, sizeBytes }: Pick<ManifestMeta, 'fileCount' | 'sizeBytes'>,
  onStaged: (files: number, bytes: number) => void,
): Stager {
  const smallWaiting = sizeBytes > fileCount * WORTH_WAITING_BYTES ? SMALL_WAITING : WINDOW_FILES
  const windows = createWorkGroup(WINDOWS_AT_ONCE)
  const small: Staged[] = []
  let large: Staged[] = []
  let largeBytes = 0
  let count = 0
  let owner: { uid: number; gid: number } | undefined
  let diskBytes = 0
  const made = createMadeList()

  async function build(entries: Staged[]): Promise<void> {
    const files: { entry: KeyedEntry; number: number; target: DirectTarget }[] = []
    let bytes = 0
    {
      // Nobody uses them any more once `decodeAll` has resolved or failed.
      using opened = new DisposableStack()
      const packs = new Map<string, WantedBlock[]>()
      for (const { entry, number } of entries) {
        if (entry.kind === 'symlink') {
          makeSymlink(entry, addressOf(staging, String(number)))
          made.add(number, lstatSync(addressOf(staging, String(number))))
          continue
        }
        const file = opened.use(createDescriptorAt(staging, String(number), MADE_MODE))
        const direct = entry.sizeBytes >= LARGE_BYTES ? opened.use(openDirect(file)) : undefined
        const target = { fd: file.fd, directFd: direct?.fd ?? -1 }
        files.push({ entry, number, target })
        const { end, writtenBytes } = collectBlocks(repository, entry, target, packs)
        // Blocks of zeros are not written, so they become holes again. What grows as it is written is slower to write.
        if (end < entry.sizeBytes || target.directFd >= 0) ftruncateSync(target.fd, entry.sizeBytes)
        diskBytes += spaceOf(writtenBytes)
        bytes += entry.sizeBytes
      }
      await decodeAll(repository, pool, packs)
      for (const { entry, number, target } of files) {
        setMadeAttributes(target.fd, ownerOf(target.fd), entry)
        made.add(number, fstatSync(target.fd))
      }
    }
    onStaged(files.length, bytes)
  }

  /** All that is made in one directory is made with one owner. */
  function ownerOf(fd: number): { uid: number; gid: number } {
    owner ??= fstatSync(fd)
    return owner
  }

  /** Resolves when another may be started. */
  async function start(entries: Staged[]): Promise<void> {
    windows.start(build(entries))
    await windows.room()
    if (windows.hasFailed()) await windows.drain()
  }

  const isLargeFull = () => largeBytes >= (windows.size > 0 ? WINDOW_BYTES : FIRST_WINDOW_BYTES)

  const startSmall = () => start(small.splice(0, WINDOW_FILES))

  async function startLarge(): Promise<void> {
    const window = large
    large = []
    largeBytes = 0
    await start(window)
    if (small.length > 0) await startSmall()
  }

  return {
    add(entry) {
      const staged = { entry, number: count }
      if (entry.sizeBytes < LARGE_BYTES) small.push(staged)
      else {
        large.push(staged)
        largeBytes += entry.sizeBytes
      }
      return count++
    },
    isFull: () => isLargeFull() || small.length >= smallWaiting,
    async flush() {
      if (isLargeFull()) await startLarge()
      while (small.length >= smallWaiting) await startSmall()
    },
    async finish() {
      if (large.length > 0) await startLarge()
      while (small.length > 0) await startSmall()
      await windows.drain()
    },
    abandon: windows.ended,
    count: () => count,
    diskBytes: () => diskBytes,
    made: () => made.take(count),
    async sync() {
      if (count > SYNCED_ONE_BY_ONE) await syncFileSystem(staging)
      else
        await forEachAtOnce([...Array(count).keys()], SYNCED_TOGETHER, (number) =>
          syncAddress(addressOf(staging, String(number))),
        )
    },
  }
}

const fsyncAsync = promisify(fsync)

/** A symlink has nothing of its own to sync: it is part of its directory. */
async function syncAddress(address: string | Buffer): Promise<void> {
  let opened: Descriptor
  try {
    opened = openDescriptor(address, OPEN_FILE)
  } catch (error) {
    if (hasCode(error, 'ELOOP')) return
    throw error
  }
  using file = opened
  await file.use(fsyncAsync)
}

/** What is gone by now needs no sync, but that it is gone does: then the nearest directory above it is meant. */
export async function syncPaths(sandbox: Sandbox, paths: string[][]): Promise<void> {
  await forEachAtOnce(paths, SYNCED_TOGETHER, async (path) => {
    for (let depth = path.length, isSynced = false; !isSynced; depth--)
      isSynced = depth === 0 ? await syncTop(sandbox) : await isSyncedThere(sandbox, path.slice(0, depth))
  })
}

async function syncTop(sandbox: Sandbox): Promise<true> {
  using top = sandbox.openDirectory([])
  await fsyncDirectory(top)
  return true
}

async function isSyncedThere(sandbox: Sandbox, path: string[]): Promise<boolean> {
  try {
    using place = sandbox.openPlace(path)
    await syncAddress(addressOf(place.parent, place.name))
    return true
  } catch (error) {
    if (!isGone(error)) throw error
    return false
  }
}

/** syncfs(2), which Node lacks. The directory is named by our descriptor of it. */
export async function syncFileSystem(directory: Directory): Promise<void> {
  await promisify(execFile)('sync', ['-f', `/proc/${process.pid}/fd/${directory.fd}`])
}

function makeSymlink(entry: KeyedEntry, address: string | Buffer): void {
  symlinkSync(nameToDisk(entry.target ?? ''), address)
  setAttributes(address, attributesOf(entry))
}

/** Adds the entry's blocks to those wanted of each pack. Answers where the last of them ends, and their bytes. */
function collectBlocks(
  repository: Repository,
  entry: KeyedEntry,
  target: DirectTarget,
  packs: Map<string, WantedBlock[]>,
): { end: number; writtenBytes: number } {
  let end = 0
  let writtenBytes = 0
  eachBlock(entry, (idAt, offset, length) => {
    if (idAt < 0) return
    const block = repository.index.findAny(entry.content, idAt)
    if (block < 0) throw damaged([entry.path])
    const place = repository.index.place(block)
    if (place.length !== length) throw damaged([entry.path])
    const wanted = packs.get(place.packId) ?? []
    packs.set(place.packId, wanted)
    wanted.push({ frame: place, inner: place.inner, length, ids: entry.content, idAt, target, offset })
    end = offset + length
    writtenBytes += length
  })
  return { end, writtenBytes }
}

async function decodeAll(repository: Repository, pool: Pool, packs: Map<string, WantedBlock[]>): Promise<void> {
  const jobs: Promise<void>[] = []
  const bad: DamagedBlock[] = []
  for (const [packId, wanted] of packs) {
    for (const part of decodeJobs(packId, wanted, { isStrict: false })) {
      const job = pool.decode(part).then(({ damaged: found }) => {
        for (const { blocks } of found) bad.push(...blocks.map((id) => ({ id, packId })))
      })
      jobs.push(job)
    }
  }
  const failed = (await Promise.allSettled(jobs)).find((result) => result.status === 'rejected')
  if (bad.length > 0) {
    await repository.recordDamage(bad)
    throw damaged(bad.slice(0, 5).map(({ id }) => `block ${Buffer.from(id).toString('hex')}`))
  }
  if (failed) throw failed.reason
}

function damaged(what: string[]) {
  return fail('backup_damaged', `The backup is damaged (${what.join(', ')}); nothing was restored.`)
}
