// Changing the mode of files and directories: everything is checked before anything is touched, and when one fails after
// all, those before it are taken back.
import { type BigIntStats, chmodSync } from 'node:fs'
import type { FileEntry } from '../../contract/agent/agent-files.ts'
import { fail, isFailure } from '../../contract/errors.ts'
import type { Descriptor } from '../../kit/files/descriptor.ts'
import { hasCode } from '../../kit/files/errno.ts'
import { createTurns } from '../../kit/waiting/turns.ts'
import { type Change, journaled } from './changes/changes.ts'
import { modeProperties } from './changes/probes.ts'
import { createFieldFaults } from './field-faults.ts'
import { type CheckedEntry, withEntries } from './named-entries.ts'
import { describeAt, kindOf } from './reading/entries.ts'
import { addressOf, fsyncFile } from './sandbox/directory.ts'
import { explained } from './sandbox/errors.ts'
import {
  hasPermissions,
  isOursToChange,
  keptModeOf,
  openReference,
  type Reference,
  setPermissions,
} from './sandbox/ownership.ts'
import { formatPath, type Segments } from './sandbox/paths.ts'
import type { Place } from './sandbox/sandbox.ts'
import type { ServerFiles } from './server-files.ts'

/** Files that are changed before they are synced together: no more descriptors than this for one request. */
const SYNCED_AT_ONCE = 32

/**
 * What the owner must keep. The service may be the owner and no more than that: without these, backups could not read what is
 * there, and nobody could delete what a directory holds.
 */
const OWNER_KEEPS = {
  file: { permissions: 0o600, sentence: 'The owner of a file keeps read and write' },
  directory: { permissions: 0o700, sentence: 'The owner of a directory keeps read, write and execute' },
} as const

interface Item {
  path: string
  segments: Segments
  /** False for what has the mode already: it is only described. */
  isChange: boolean
}

interface Changed {
  item: Item
  before: BigIntStats
}

export async function setMode(
  server: ServerFiles,
  { mode, ...request }: { root: string; files: string[]; mode: number },
  change: Change,
): Promise<{ data: FileEntry[] }> {
  using _held = server.lock.share()
  return await withEntries(server, request, async (checked) => {
    const items = plan(checked, mode)
    const changing = items.filter(({ isChange }) => isChange)
    if (changing.length === 0) return { data: await apply(server, items, mode, []) }
    const probed = items.map(({ path, isChange }) => ({ path, isChange }))
    return await journaled(server, change, { op: 'mode', mode, items: probed }, async (durable) => {
      await durable
      const data = await applyOrTakeBack(server, items, mode)
      const paths = changing.map(({ path }) => path)
      return { answer: { data }, properties: modeProperties(paths, mode) }
    })
  })
}

/** Of several spellings of one path the first counts. */
function plan(checked: CheckedEntry[], mode: number): Item[] {
  const items = new Map<string, Item>()
  const faults = createFieldFaults()
  for (const { field, segments, stats } of checked) {
    const path = formatPath(segments)
    if (!stats) {
      faults.add(fail('not_found', `There is no ${JSON.stringify(path)}.`))
      continue
    }
    faults.check(field, () => requireTakes(stats, path, mode))
    if (!items.has(path)) items.set(path, { path, segments, isChange: !hasPermissions(stats, mode) })
  }
  faults.refuse()
  return [...items.values()]
}

function requireTakes(stats: BigIntStats, path: string, mode: number): void {
  const quoted = JSON.stringify(path)
  const kind = kindOf(stats)
  if (kind === 'symlink') throw fail('invalid_path', `${quoted} is a symbolic link, which has no mode of its own.`)
  if (kind === 'other') throw fail('invalid_path', `${quoted} is neither a regular file nor a directory.`)
  const { permissions, sentence } = OWNER_KEEPS[kind]
  if ((mode & permissions) !== permissions) {
    const message = `${sentence}: ${quoted} cannot be given this mode.`
    throw fail('invalid_request', { detail: message, errors: [{ path: '/mode', message }] })
  }
  if (!isOursToChange(stats)) throw notOurs(path)
}

const notOurs = (path: string, cause?: unknown) =>
  fail('invalid_path', `The system does not let the service change the mode of ${JSON.stringify(path)}.`, cause)

async function applyOrTakeBack(server: ServerFiles, items: Item[], mode: number): Promise<FileEntry[]> {
  const done: Changed[] = []
  try {
    return await apply(server, items, mode, done)
  } catch (error) {
    for (const changed of done.reverse()) await takeBack(server, changed, mode)
    throw error
  }
}

/** What it changes is synced, and added to `done`. */
async function apply(server: ServerFiles, items: Item[], mode: number, done: Changed[]): Promise<FileEntry[]> {
  const entries: FileEntry[] = []
  const turn = createTurns(server.files.share)
  for (let at = 0; at < items.length; at += SYNCED_AT_ONCE) {
    using opened = new DisposableStack()
    const unsynced: Descriptor[] = []
    for (const item of items.slice(at, at + SYNCED_AT_ONCE)) {
      if (turn.due()) await turn.take()
      using place = server.files.openPlace(item.segments)
      if (item.isChange) unsynced.push(opened.use(changeAt(place, item, mode, done)))
      entries.push(describeAt(place.parent, place.name))
    }
    await Promise.all(unsynced.map(fsyncFile))
  }
  return entries
}

/** What has the name by now is looked at again: it may be another thing than the one that was checked. */
function changeAt(place: Place, item: Item, mode: number, done: Changed[]): Descriptor {
  return explained(item.path, () => {
    using reference = openReference(addressOf(place.parent, place.name))
    requireTakes(reference.stats, item.path, mode)
    try {
      setPermissions(reference, mode)
    } catch (error) {
      // Also of a file that is made immutable.
      throw hasCode(error, 'EPERM') ? notOurs(item.path, error) : error
    }
    done.push({ item, before: reference.stats })
    return reference.openToSync()
  })
}

/** What cannot be taken back has its fact: whoever settles the change finds it on the disk. */
async function takeBack(server: ServerFiles, { item, before }: Changed, mode: number): Promise<void> {
  try {
    using place = server.files.openPlace(item.segments)
    using reference = openReference(addressOf(place.parent, place.name))
    if (!isStill(reference, before, mode)) return
    // First: it may be back to a mode in which nobody can open it.
    using file = reference.openToSync()
    chmodSync(reference.address, keptModeOf(before, before.isDirectory()))
    await fsyncFile(file)
  } catch (error) {
    if (!isFailure(error) && !hasCode(error, 'ENOENT')) server.onUnexpected(error)
  }
}

/** Not what another program has made of it since. */
const isStill = ({ stats }: Reference, before: BigIntStats, mode: number) =>
  stats.ino === before.ino && hasPermissions(stats, mode)
