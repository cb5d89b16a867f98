// Moving and renaming, one thing or many: every move is checked, and all have room for missing directories, before any
// is made; if one fails anyway, those before it are undone, with the directories made for them.
import type { BigIntStats } from 'node:fs'
import type { FileEntry } from '../../contract/agent/agent-files.ts'
import { fail, isFailure } from '../../contract/errors.ts'
import { MAX_DEPTH } from '../../contract/fixed-limits.ts'
import { hasCode } from '../../kit/files/errno.ts'
import { createTurns, type Turns } from '../../kit/waiting/turns.ts'
import { type Change, journaled } from './changes/changes.ts'
import { createMadeParents, type MadeParents } from './changes/made-parents.ts'
import { placedWithParents } from './changes/new-parents.ts'
import { inodeOf, moveProperties } from './changes/probes.ts'
import { moveReplacing, moveToNewName } from './changes/replace.ts'
import { aboutField, aboutFieldAsync, createFieldFaults } from './field-faults.ts'
import type { Share } from './locks.ts'
import { describeAt, kindOf } from './reading/entries.ts'
import { fsyncDirectory, isSameFile, linkedAt, renameNewAt, statsIfThere, unlinkAt } from './sandbox/directory.ts'
import { explained, explainedAsync } from './sandbox/errors.ts'
import { createPathTree } from './sandbox/path-tree.ts'
import { checkNewName, formatPath, isWithin, parsePath, type Segments } from './sandbox/paths.ts'
import type { ServerFiles } from './server-files.ts'
import { NOTHING, sum } from './space/amounts.ts'
import { prepareReplaced, type RoomForParents, recordsOf, roomForParents } from './space/parents.ts'
import { slotName, type TrashBatch, type TrashRecord } from './trash/trash-records.ts'
import { isDeeperThan } from './tree-depth.ts'

interface Move {
  /** Of the request, for its faults. */
  field: string
  from: Segments
  to: Segments
  inode: string
  /** Whether the target is another name of the same file: then the old name goes, and nothing is replaced. */
  isSameFile: boolean
  /** Whether it takes directories further down. */
  goesDown: boolean
  /** What is in the way, with its slot in the trash. */
  replaced: { kind: TrashRecord['items'][number]['kind']; index: number } | undefined
}

export async function move(
  server: ServerFiles,
  request: { moves: { from: string; to: string }[]; overwrite?: boolean },
  change: Change,
): Promise<{ data: FileEntry[] }> {
  using held = server.lock.share()
  const turn = createTurns(server.files.share)
  const moves = await plan(request.moves, turn)
  const claimed = moves.flatMap(({ from, to }) => [formatPath(from), formatPath(to)])
  return await server.claims.alone(
    () => claimed,
    async () => {
      await checkAll(server, moves, request.overwrite ?? false, turn)
      const replaced = replacedBy(moves)
      const records = replaced.length > 0 ? recordsOf(replaced) : NOTHING
      using room = await roomForParents(
        server,
        moves.map(({ to }) => to),
        async (parents) => (await server.usage.room(sum(parents, records)))[Symbol.dispose](),
      )
      const probed = moves.map(({ from, to, inode, isSameFile }) => ({
        from: formatPath(from),
        to: formatPath(to),
        inode,
        ...(isSameFile ? { isSameFile } : {}),
      }))
      return await journaled(server, change, { op: 'moved', moves: probed }, async (durable) => {
        const data = await applyAll(server, moves, { held, room, durable })
        server.usage.touch()
        return { answer: { data }, properties: moveProperties(request.moves) }
      })
    },
  )
}

interface Applying {
  held: Share
  room: RoomForParents
  durable: Promise<void>
}

const replacedBy = (moves: readonly Move[]): TrashRecord['items'] =>
  moves.flatMap(({ to, replaced: old }) => (old ? [{ path: formatPath(to), kind: old.kind }] : []))

async function applyAll(server: ServerFiles, moves: Move[], { held, room, durable }: Applying): Promise<FileEntry[]> {
  const replaced = replacedBy(moves)
  using batch = replaced.length > 0 ? await prepareReplaced(server, replaced) : undefined
  await durable
  const parents = createMadeParents(server)
  const begun: Move[] = []
  const entries: FileEntry[] = []
  try {
    for (const planned of moves) {
      begun.push(planned)
      await room.renew(planned.to)
      entries.push(await aboutFieldAsync(planned.field, () => apply(server, planned, { batch, room, parents })))
      room.made(planned.to)
      // The moves before it, or another change meanwhile, may have put something into it since it was checked.
      if (planned.goesDown && (moves.length > 1 || !held.isOnly()))
        await aboutFieldAsync(`${planned.field}/to`, () => refuseTooDeep(server, planned.to, planned.to))
    }
  } catch (error) {
    await takeAllBack(server, begun, batch)
    await parents.removeEmpty()
    server.usage.touch()
    throw error
  }
  return entries
}

/** What can be decided from the paths alone. */
async function plan(moves: { from: string; to: string }[], turn: Turns): Promise<Move[]> {
  const planned: Move[] = []
  const faults = createFieldFaults()
  const sources = createPathTree()
  const targets = createPathTree()
  for (const [index, move] of moves.entries()) {
    if (turn.due()) await turn.take()
    const field = `/moves/${index}`
    const from = faults.check(`${field}/from`, () => parseEnd(move.from))
    const to = faults.check(`${field}/to`, () => parseEnd(move.to))
    if (!from || !to || !faults.check(`${field}/to`, () => requireElsewhere(from, to))) continue
    const source = sources.add(from)
    if (source)
      faults.add(clash(`${field}/from`, `${formatPath(source.other)} and ${formatPath(from)} cannot be moved at once.`))
    const target = targets.add(to)
    if (target)
      faults.add(clash(`${field}/to`, `${formatPath(target.other)} and ${formatPath(to)} cannot be targets at once.`))
    planned.push({ field, from, to, inode: '', isSameFile: false, goesDown: false, replaced: undefined })
  }
  faults.refuse()
  return planned
}

const clash = (path: string, message: string) =>
  fail('invalid_request', { detail: message, errors: [{ path, message }] })

function parseEnd(path: string): Segments {
  const segments = parsePath(path)
  if (segments.length === 0) throw fail('invalid_path', 'The top directory cannot be moved or replaced.')
  return segments
}

function requireElsewhere(from: Segments, to: Segments): true {
  if (isWithin(from, to)) throw fail('invalid_path', `${formatPath(from)} cannot be moved into or onto itself.`)
  if (isWithin(to, from)) throw fail('invalid_path', `${formatPath(from)} cannot replace what holds it.`)
  return true
}

async function checkAll(server: ServerFiles, moves: Move[], overwrite: boolean, turn: Turns): Promise<void> {
  const faults = createFieldFaults()
  for (const planned of moves) {
    if (turn.due()) await turn.take()
    try {
      await check(server, planned, moves, overwrite)
    } catch (error) {
      faults.add(error)
    }
  }
  faults.refuse()
}

/** What needs the disk. */
async function check(server: ServerFiles, planned: Move, all: Move[], overwrite: boolean): Promise<void> {
  using source = aboutField(`${planned.field}/from`, () => server.files.openPlace(planned.from))
  const stats = statsIfThere(source.parent, source.name)
  if (!stats) throw fail('not_found', `There is no ${JSON.stringify(source.path)}.`)
  planned.inode = inodeOf(stats)
  planned.goesDown = stats.isDirectory() && planned.to.length > planned.from.length
  await aboutFieldAsync(`${planned.field}/to`, () => checkTarget(server, planned, all, { overwrite, stats }))
}

async function checkTarget(
  server: ServerFiles,
  planned: Move,
  all: Move[],
  { overwrite, stats }: { overwrite: boolean; stats: BigIntStats },
): Promise<void> {
  if (planned.goesDown) await refuseTooDeep(server, planned.from, planned.to)
  const there = server.files.lstatIfThere(planned.to)
  if (!there) {
    // Names that are there already are left alone, however odd they are: only what is new is held to the rules.
    checkNewName(planned.to.at(-1) ?? '')
    return
  }
  if (!overwrite) throw fail('already_exists', `${JSON.stringify(formatPath(planned.to))} already exists.`)
  planned.isSameFile = !there.isDirectory() && there.ino === stats.ino && there.dev === stats.dev
  if (planned.isSameFile) return
  planned.replaced = { kind: kindOf(there), index: all.filter((other) => other.replaced).length }
}

/** Only where it goes further down: what a game has nested too deep can still be brought up. */
async function refuseTooDeep({ files }: ServerFiles, at: Segments, to: Segments): Promise<void> {
  // Whoever has moved it on since has checked it too.
  if (!files.lstatIfThere(at)?.isDirectory()) return
  using directory = files.openDirectory(at)
  if (!(await isDeeperThan(directory, MAX_DEPTH - to.length, files.share))) return
  const path = JSON.stringify(formatPath(at))
  throw fail('invalid_path', `${path} holds too many levels: a path has at most ${MAX_DEPTH} names.`)
}

interface Applied {
  batch: TrashBatch | undefined
  room: RoomForParents
  parents: MadeParents
}

async function apply(server: ServerFiles, planned: Move, { batch, room, parents }: Applied): Promise<FileEntry> {
  using source = server.files.openPlace(planned.from)
  const from = { folder: source.parent, name: source.name }
  const onMade = parents.along(planned.to)
  const isPlaced = await explainedAsync(source.path, () => placedWithParents(server, from, planned.to, { onMade }))
  if (!isPlaced) await room.renew(planned.to)
  using target = server.files.openNewPlace(planned.to, { onMade })
  explained(source.path, () => {
    if (isPlaced) return
    // A rename from one name of a file to another does nothing.
    if (planned.isSameFile && isSameFile(from.folder, from.name, target.parent, target.name))
      unlinkAt(from.folder, from.name)
    else if (batch && planned.replaced) moveReplacing(from, target.parent, target.name, batch, planned.replaced.index)
    else moveToNewName(from, target.parent, target.name)
  })
  await fsyncDirectory(target.parent)
  await fsyncDirectory(source.parent)
  return describeAt(target.parent, target.name)
}

/** The last first. What cannot be taken back, since its old name is taken by now, stays moved: the fact tells of it. */
async function takeAllBack(server: ServerFiles, begun: Move[], batch: TrashBatch | undefined): Promise<void> {
  const turn = createTurns(server.files.share)
  for (const planned of begun.reverse()) {
    if (turn.due()) await turn.take()
    try {
      takeBack(server, planned, batch)
    } catch (error) {
      if (!isFailure(error) && !hasCode(error, 'EEXIST', 'ENOTEMPTY', 'ENOENT')) server.onUnexpected(error)
    }
  }
}

function takeBack(server: ServerFiles, planned: Move, batch: TrashBatch | undefined): void {
  const there = server.files.lstatIfThere(planned.to)
  if (there && inodeOf(there) !== planned.inode) return
  // Of a move that has failed half way, what it replaces may be in the trash already.
  if (!there && !(batch && planned.replaced && statsIfThere(batch.folder, slotName(planned.replaced.index)))) return
  using target = server.files.openPlace(planned.to)
  if (there) {
    using source = server.files.openPlace(planned.from)
    if (planned.isSameFile) {
      linkedAt(target.parent, target.name, source.parent, source.name)
      return
    }
    renameNewAt(target.parent, target.name, source.parent, source.name)
  }
  if (batch && planned.replaced) renameNewAt(batch.folder, slotName(planned.replaced.index), target.parent, target.name)
}
