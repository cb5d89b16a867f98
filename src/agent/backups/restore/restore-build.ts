// Builds files beside the tree from the blocks of a backup. Every block is checked as it is decoded, by its name or by the
// span that it is in, and nothing that fails is ever put in place.
import { fstatSync, ftruncateSync, lstatSync, symlinkSync } from 'node:fs'
import { type DirectTarget, openDirect } from '../../../blobs/direct-io.ts'
import { fail } from '../../../contract/errors.ts'
import { addressOf, createDescriptorAt, type Directory, openChild } from '../../files/sandbox/directory.ts'
import { nameToDisk } from '../../files/sandbox/names.ts'
import { permissionsOf } from '../../files/sandbox/ownership.ts'
import { spaceOf } from '../../files/space/amounts.ts'
import type { FramePlace } from '../blocks/block-index.ts'
import { wholeIn } from '../blocks/prior-blocks.ts'
import { eachWrite, isOneBlock, ONLY_ID, type Write } from '../format/block-runs.ts'
import type { KeyedEntry } from '../format/entries.ts'
import type { DamagedBlock } from '../store/damage-list.ts'
import { decodePart, type PackSource } from '../store/decode-pack.ts'
import { healLater, inDoubt } from '../store/healing.ts'
import type { Repository } from '../store/repository.ts'
import { decodeJobs, type WantedBlock } from '../workers/decode-jobs.ts'
import { MADE, type NewFile } from '../workers/new-files.ts'
import { attributesOf, MADE_MODE, setAttributes, setMadeAttributes } from './restore-attributes.ts'
import { createMadeList } from './restore-journal.ts'
import { type Staged, stagedFolder } from './restore-staged.ts'

/** From this size on a file is written around the page cache. */
export const LARGE_BYTES = 1024 * 1024

interface OpenedFile extends Staged {
  target: DirectTarget
}

/** By pack. */
type Wanted = Map<string, WantedBlock[]>

/** What is wanted of each pack, and the folders that are open meanwhile. */
interface Window {
  packs: Wanted
  /** What is written over that. */
  patches: Wanted
  /** Of the block that was wanted last: that of the next is mostly the same. */
  frame: FramePlace | undefined
  opened: DisposableStack
  folders: Map<number, Directory>
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

  function openParent({ opened, folders }: Window, folder: number | undefined): Directory {
    if (folder === undefined) return staging
    const held = folders.get(folder) ?? opened.use(openChild(staging, stagedFolder(folder)))
    folders.set(folder, held)
    return held
  }

  const addressIn = (window: Window, staged: Staged) => addressOf(openParent(window, staged.folder), staged.name)

  function buildSymlink(window: Window, staged: Staged): void {
    const { entry, number } = staged
    const address = addressIn(window, staged)
    symlinkSync(nameToDisk(entry.target ?? ''), address)
    setAttributes(address, attributesOf(entry))
    made.add(number, lstatSync(address))
  }

  /** The worker that decodes its block makes it. */
  function wantFile(window: Window, staged: Staged, content: Uint8Array): void {
    const { entry, number } = staged
    const { uid, gid, mtimeNs } = entry
    const file = { address: addressIn(window, staged), number, mode: permissionsOf(entry), uid, gid, mtimeNs }
    const { sizeBytes } = entry
    const write = { idAt: ONLY_ID, offset: 0, length: sizeBytes, sectors: 0 }
    wantBlock(repository, window, { entry, content }, write, null, file)
    diskBytes += spaceOf(sizeBytes)
  }

  function openFile(window: Window, staged: Staged): OpenedFile {
    const { entry, folder, name } = staged
    const { opened } = window
    const file = opened.use(createDescriptorAt(openParent(window, folder), name, MADE_MODE))
    const direct = entry.sizeBytes >= LARGE_BYTES ? opened.use(openDirect(file)) : undefined
    const target = { fd: file.fd, directFd: direct?.fd ?? -1 }
    const { end, writtenBytes } = collectBlocks(repository, entry, target, window)
    // Blocks of zeros are not written, so they become holes again. What grows as it is written is slower to write.
    if (end < entry.sizeBytes || target.directFd >= 0) ftruncateSync(target.fd, entry.sizeBytes)
    diskBytes += spaceOf(writtenBytes)
    return { ...staged, target }
  }

  function noteMade(rows: Float64Array): void {
    const field = (at: number) => rows[at] ?? 0
    for (let at = 0; at < rows.length; at += MADE.fields) {
      const look = { ino: field(at + MADE.ino), size: field(at + MADE.size), mtimeMs: field(at + MADE.mtimeMs) }
      made.add(field(at + MADE.number), look)
    }
  }

  return {
    async build(entries) {
      const files: OpenedFile[] = []
      // Nobody uses them any more once `decodeAll` has resolved or failed.
      using opened = new DisposableStack()
      const window: Window = { packs: new Map(), patches: new Map(), frame: undefined, opened, folders: new Map() }
      const counts = { files: 0, bytes: 0 }
      for (const staged of entries) {
        const { entry } = staged
        // Each time that it is asked for, it is another view.
        const { content } = entry
        if (entry.kind === 'symlink') buildSymlink(window, staged)
        else if (isOneBlock({ content, sizeBytes: entry.sizeBytes })) wantFile(window, staged, content)
        else files.push(openFile(window, staged))
        if (entry.kind === 'symlink') continue
        counts.files++
        counts.bytes += entry.sizeBytes
      }
      await decodeAll(source, window.packs, noteMade)
      await decodeAll(source, window.patches, noteMade)
      for (const { entry, number, target } of files) {
        setMadeAttributes(target.fd, ownerOf(target.fd), entry)
        made.add(number, fstatSync(target.fd))
      }
      return counts
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
  window: Window,
): { end: number; writtenBytes: number } {
  let end = 0
  let writtenBytes = 0
  // A few sectors here and there are written sooner through the page cache than each around it.
  const patched = { fd: target.fd, directFd: -1 }
  const { content } = entry
  const want = (write: Write) => {
    const isPatch = write.sectors !== 0
    wantBlock(repository, window, { entry, content }, write, isPatch ? patched : target)
    if (isPatch) return
    end = write.offset + write.length
    writtenBytes += write.length
  }
  eachWrite(entry, want, wholeIn(repository.index, content))
  return { end, writtenBytes }
}

function wantBlock(
  { index, doubtful }: Repository,
  window: Window,
  { entry, content: ids }: { entry: KeyedEntry; content: Uint8Array },
  { idAt, offset, length, sectors }: Write,
  target: DirectTarget | null,
  file?: NewFile,
): void {
  const found = index.findAny(ids, idAt)
  if (found < 0) throw doubtful.size > 0 ? inDoubt() : damaged([entry.path])
  if (index.lengthOf(found) !== length) throw damaged([entry.path])
  const number = index.frameOf(found)
  const frame = window.frame?.frame === number ? window.frame : index.framePlace(number)
  window.frame = frame
  const packs = sectors === 0 ? window.packs : window.patches
  const wanted = packs.get(frame.packId) ?? []
  if (wanted.length === 0) packs.set(frame.packId, wanted)
  wanted.push({ frame, inner: index.innerOf(found), length, ids, idAt, target, offset, sectors, file })
}

async function decodeAll(
  source: PackSource & { serverId: string },
  packs: Wanted,
  onMade: (rows: Float64Array) => void,
): Promise<void> {
  const { repository, serverId } = source
  const jobs: Promise<void>[] = []
  const bad: DamagedBlock[] = []
  const spared: DamagedBlock[] = []
  for (const [packId, wanted] of packs) {
    const note = repository.index.packNotes.get(packId)
    for (const part of decodeJobs(packId, wanted, { isStrict: false, spans: note?.spans })) {
      const job = decodePart(source, part).then((decoded) => {
        onMade(decoded.made)
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
