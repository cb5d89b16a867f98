// Builds files beside the tree from the blocks of a backup. Every block is checked against its name as it is decoded, and
// nothing that fails is ever put in place.
import { fstatSync, ftruncateSync, lstatSync, symlinkSync } from 'node:fs'
import { type DirectTarget, openDirect } from '../../../blobs/direct-io.ts'
import { fail } from '../../../contract/errors.ts'
import { addressOf, createDescriptorAt, type Directory } from '../../files/sandbox/directory.ts'
import { nameToDisk } from '../../files/sandbox/names.ts'
import { spaceOf } from '../../files/space/amounts.ts'
import { eachBlock } from '../format/block-runs.ts'
import type { KeyedEntry } from '../format/entries.ts'
import type { DamagedBlock } from '../store/damage-list.ts'
import { decodePart, type PackSource } from '../store/decode-pack.ts'
import { healLater, inDoubt } from '../store/healing.ts'
import type { Repository } from '../store/repository.ts'
import { decodeJobs, type WantedBlock } from '../workers/decode-jobs.ts'
import { attributesOf, MADE_MODE, setAttributes, setMadeAttributes } from './restore-attributes.ts'
import { createMadeList } from './restore-journal.ts'

/** From this size on a file is written around the page cache. */
export const LARGE_BYTES = 1024 * 1024

export interface Staged {
  entry: KeyedEntry
  number: number
}

interface OpenedFile extends Staged {
  target: DirectTarget
}

export interface Builder {
  /** Builds each entry under its number in staging. Answers how many of them are files, and their bytes. */
  build(entries: Staged[]): Promise<{ files: number; bytes: number }>
  /** What the files built so far take on the disk; holes take nothing. */
  diskBytes(): number
  /** What each of the first so many was when it was made. */
  made(count: number): Float64Array
}

export function createBuilder(source: PackSource & { serverId: string }, staging: Directory): Builder {
  const { repository } = source
  let owner: { uid: number; gid: number } | undefined
  let diskBytes = 0
  const made = createMadeList()

  /** All that is made in one directory is made with one owner. */
  function ownerOf(fd: number): { uid: number; gid: number } {
    owner ??= fstatSync(fd)
    return owner
  }

  function buildSymlink({ entry, number }: Staged): void {
    const address = addressOf(staging, String(number))
    symlinkSync(nameToDisk(entry.target ?? ''), address)
    setAttributes(address, attributesOf(entry))
    made.add(number, lstatSync(address))
  }

  function openFile({ entry, number }: Staged, opened: DisposableStack, packs: Map<string, WantedBlock[]>): OpenedFile {
    const file = opened.use(createDescriptorAt(staging, String(number), MADE_MODE))
    const direct = entry.sizeBytes >= LARGE_BYTES ? opened.use(openDirect(file)) : undefined
    const target = { fd: file.fd, directFd: direct?.fd ?? -1 }
    const { end, writtenBytes } = collectBlocks(repository, entry, target, packs)
    // Blocks of zeros are not written, so they become holes again. What grows as it is written is slower to write.
    if (end < entry.sizeBytes || target.directFd >= 0) ftruncateSync(target.fd, entry.sizeBytes)
    diskBytes += spaceOf(writtenBytes)
    return { entry, number, target }
  }

  return {
    async build(entries) {
      const files: OpenedFile[] = []
      // Nobody uses them any more once `decodeAll` has resolved or failed.
      using opened = new DisposableStack()
      const packs = new Map<string, WantedBlock[]>()
      for (const staged of entries)
        if (staged.entry.kind === 'symlink') buildSymlink(staged)
        else files.push(openFile(staged, opened, packs))
      await decodeAll(source, packs)
      for (const { entry, number, target } of files) {
        setMadeAttributes(target.fd, ownerOf(target.fd), entry)
        made.add(number, fstatSync(target.fd))
      }
      return { files: files.length, bytes: files.reduce((sum, { entry }) => sum + entry.sizeBytes, 0) }
    },
    diskBytes: () => diskBytes,
    made: (count) => made.take(count),
  }
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
    if (block < 0) throw repository.doubtful.size > 0 ? inDoubt() : damaged([entry.path])
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

async function decodeAll(source: PackSource & { serverId: string }, packs: Map<string, WantedBlock[]>): Promise<void> {
  const { repository, serverId } = source
  const jobs: Promise<void>[] = []
  const bad: DamagedBlock[] = []
  const spared: DamagedBlock[] = []
  for (const [packId, wanted] of packs) {
    for (const part of decodeJobs(packId, wanted, { isStrict: false })) {
      const job = decodePart(source, part).then((decoded) => {
        for (const { blocks } of decoded.damaged) bad.push(...blocks.map((id) => ({ id, packId })))
        for (const { blocks } of decoded.spared) spared.push(...blocks.map((id) => ({ id, packId })))
      })
      jobs.push(job)
    }
  }
  const failed = (await Promise.allSettled(jobs)).find((result) => result.status === 'rejected')
  if (bad.length + spared.length > 0) await repository.recordDamage([...bad, ...spared])
  for (const { packId } of spared) healLater(repository, packId, serverId)
  if (bad.length > 0) throw damaged(bad.slice(0, 5).map(({ id }) => `block ${Buffer.from(id).toString('hex')}`))
  if (failed) throw failed.reason
}

function damaged(what: string[]) {
  return fail('backup_damaged', `The backup is damaged (${what.join(', ')}); nothing was restored.`)
}
