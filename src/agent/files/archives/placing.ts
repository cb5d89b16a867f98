// An unpacked tree on its way into place. Before its first item moves, it gets the name of its work in staging, with a note
// of where it goes: whatever ends the process then, the next start moves the rest. What has moved is gone from the tree.
import { readdirSync, readFileSync } from 'node:fs'
import type { FileEntry } from '../../../contract/agent/agent-files.ts'
import { fail, isFailure } from '../../../contract/errors.ts'
import { writeFully } from '../../../kit/files/write-fully.ts'
import { despiteCancel } from '../../tasks.ts'
import { isWorkId } from '../changes/placements.ts'
import { describePath } from '../reading/entries.ts'
import {
  addressOf,
  createFileAt,
  type Directory,
  fsyncDirectory,
  fsyncFile,
  lstatAt,
  mkdirAt,
  openChild,
  openOwnFolder,
  renameAt,
  statsIfThere,
} from '../sandbox/directory.ts'
import { explainedAsync } from '../sandbox/errors.ts'
import { giveTo } from '../sandbox/ownership.ts'
import { parsePath } from '../sandbox/paths.ts'
import { openSandbox, type Sandbox } from '../sandbox/sandbox.ts'
import type { Staged } from '../sandbox/staging.ts'
import type { ServerFiles } from '../server-files.ts'
import { type Amount, atLeastNothing, minus, sum } from '../space/amounts.ts'
import { measureBeneath } from '../space/measure.ts'
import { merge } from './merge.ts'

const FOLDER = 'unpack-'
const TREE = 'tree'
const NOTE = 'note.json'
/** How long a tree waits for its job where the start could not move it. */
const DAY_MS = 24 * 3600_000

export interface Placing {
  workId: string
  directory: string
  overwrite: boolean
  /** What was unpacked takes this much. */
  total: Amount
}

/** Makes the staged folder, with an empty tree in it. `onMade`: of every directory in the tree. */
export function makeTree(server: ServerFiles, staged: Staged, onMade: () => void): Sandbox {
  mkdirAt(staged.folder, staged.name, 0o700)
  using folder = openChild(staged.folder, staged.name)
  mkdirAt(folder, TREE)
  // What is made in it belongs to whoever its top belongs to.
  giveTo(server.files.owner(), addressOf(folder, TREE))
  return openSandbox(addressOfTree(staged.folder, staged.name), { onMade })
}

const addressOfTree = (staging: Directory, name: string) => `${staging.address}/${name}/${TREE}`

/** Moves the tree into place. One that is refused is left under its staged name. */
export async function place(
  server: ServerFiles,
  staged: Staged,
  placing: Placing,
  { signal, clear }: Required<Pick<Moving, 'signal' | 'clear'>>,
): Promise<FileEntry> {
  const begin = async () => {
    await writeNote(staged, placing)
    renameAt(staged.folder, staged.name, staged.folder, nameOf(placing.workId))
    await fsyncDirectory(staged.folder)
    return openSandbox(addressOfTree(staged.folder, nameOf(placing.workId)))
  }
  const tree = openSandbox(addressOfTree(staged.folder, staged.name))
  try {
    return await moveIn(server, staged.folder, placing, {
      tree,
      signal,
      clear,
      ...(isWorkId(placing.workId) ? { begin } : {}),
    })
  } finally {
    // No start goes on with it from here on. In one rename: half of a tree would pass for the rest.
    if (statsIfThere(staged.folder, nameOf(placing.workId)))
      renameAt(staged.folder, nameOf(placing.workId), staged.folder, staged.name)
  }
}

/** Goes on with what a process that died has begun to move; undefined where there is nothing. */
export async function placeRest(server: ServerFiles, staged: Staged, workId: string): Promise<FileEntry | undefined> {
  const placing = readNote(staged.folder, workId)
  if (!placing) return undefined
  const tree = openSandbox(addressOfTree(staged.folder, nameOf(workId)))
  const { bytes, entries } = await measureBeneath(tree.rootPath, new Set())
  using reservation = server.usage.hold(bytes)
  try {
    const clear = (beside: Amount) => reservation.clear(bytes, entries, beside)
    const entry = await moveIn(server, staged.folder, placing, { tree, signal: NEVER, clear })
    reservation.commit()
    return entry
  } finally {
    renameAt(staged.folder, nameOf(workId), staged.folder, staged.name)
  }
}

const NEVER = new AbortController().signal

/** At the start, before anybody can put something in the way. What cannot be moved is left to its job, for a day. */
export async function placeAllRests(server: ServerFiles, now: number): Promise<void> {
  const names = readdirSync(server.folders.staging).filter((name) => name.startsWith(FOLDER))
  if (names.length === 0) return
  using staging = openOwnFolder(server.folders.staging)
  for (const name of names) {
    const workId = name.slice(FOLDER.length)
    try {
      const placing = server.placements.resultOf(workId) ? undefined : readNote(staging, workId)
      if (placing)
        await moveIn(server, staging, placing, { tree: openSandbox(addressOfTree(staging, name)), signal: NEVER })
    } catch (error) {
      if (!isFailure(error)) server.onUnexpected(error)
      if (now - Number(lstatAt(staging, name).mtimeMs) < DAY_MS) continue
    }
    await using staged = server.staging.open()
    renameAt(staging, name, staged.folder, staged.name)
  }
}

interface Moving {
  tree: Sandbox
  signal: AbortSignal
  /** Makes room for the tree, and for `beside`, once nothing refuses it any more. */
  clear?: (beside: Amount) => Promise<void>
  /** Called when everything was checked; answers the tree under the name that it has from then on. */
  begin?: () => Promise<Sandbox>
}

async function moveIn(
  server: ServerFiles,
  staging: Directory,
  { workId, directory, overwrite, total }: Placing,
  moving: Moving,
): Promise<FileEntry> {
  try {
    await explainedAsync(directory, () => merge(server, moving.tree, parsePath(directory), { overwrite, ...moving }))
  } catch (error) {
    throw statsIfThere(staging, nameOf(workId)) ? await countMoved(server, staging, workId, total, error) : error
  }
  const entry = describePath(server.files, directory)
  await server.placements.noteResult(workId, entry)
  return entry
}

/** What could not be taken back stays: it counts, and whoever reads of the failure reads of it. */
async function countMoved(
  server: ServerFiles,
  staging: Directory,
  workId: string,
  total: Amount,
  error: unknown,
): Promise<unknown> {
  const left = await measureBeneath(addressOfTree(staging, nameOf(workId)), new Set())
  const moved = atLeastNothing(sum(total, minus(left)))
  if (moved.entries === 0) return error
  server.usage.add(moved)
  if (!isFailure(error)) return error
  const stayed = `${moved.entries} of ${total.entries} files and directories had been moved into place, and stay there.`
  return despiteCancel(fail(error.code, `${error.detail} ${stayed}`, error))
}

async function writeNote(staged: Staged, placing: Placing): Promise<void> {
  using folder = openChild(staged.folder, staged.name)
  using file = createFileAt(folder, NOTE, 0o600)
  writeFully(file.fd, Buffer.from(JSON.stringify(placing)))
  await Promise.all([fsyncFile(file), fsyncDirectory(folder)])
}

function readNote(staging: Directory, workId: string): Placing | undefined {
  if (!isWorkId(workId) || !statsIfThere(staging, nameOf(workId))) return undefined
  return JSON.parse(readFileSync(`${staging.address}/${nameOf(workId)}/${NOTE}`, 'utf8')) as Placing
}

const nameOf = (workId: string) => `${FOLDER}${workId}`
