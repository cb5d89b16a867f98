// Moves a finished tree into a directory: what is new moves as a whole, directories on both sides are merged
// recursively, and a file in the way is refused or goes to the trash. Everything is checked before anything moves. Both
// trees may be as large as a server: only one group of moves is kept in memory, and the event loop gets its turn
// between moves.
import { type BigIntStats, opendirSync } from 'node:fs'
import type { FileKind } from '../../../contract/agent/agent-files.ts'
import { fail } from '../../../contract/errors.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import { moveReplacing, moveToFreeName, moveToNewName } from '../changes/replace.ts'
import { freeNames } from '../free-names.ts'
import { kindOf } from '../reading/entries.ts'
import {
  type Directory,
  fsyncDirectory,
  isSameFile,
  openChild,
  renameNewAt,
  statsIfThere,
  unlinkAt,
} from '../sandbox/directory.ts'
import { nameFromLatin1 } from '../sandbox/names.ts'
import { childPath, type Segments, splitPath } from '../sandbox/paths.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { ServerFiles } from '../server-files.ts'
import { type Amount, isSome, minus, NOTHING, sum } from '../space/amounts.ts'
import { prepareReplaced, recordsOf, roomForParents } from '../space/parents.ts'
import type { Room } from '../space/usage.ts'

/** What they replace is one batch of the trash. */
const GROUP_MOVES = 1024
/** This many moves are remembered, so that all of them can be taken back. */
const TAKEN_BACK_MAX = 65_536
/**
 * What is done without a turn in between, so that where nothing may be replaced, all of it comes or nothing does: names
 * that are opened or looked at on the way to what is moved, a few system calls each.
 */
const NAMES_A_TURN = 1024
const READ_AHEAD = 512

interface Step {
  /** From the top of the staged tree. */
  path: Segments
  replaced: { path: string; kind: FileKind } | undefined
  /** In its place under a second name: a crash came before the first one was dropped. */
  isThere?: boolean
}

interface MergeOptions {
  overwrite: boolean
  /** Not looked at any more once the first thing has moved: half of an archive is no answer. */
  signal: AbortSignal
  /** Makes room for the tree, and what comes with it, once nothing refuses it any more. */
  clear?: (beside: Amount) => Promise<void>
  /** Called when everything was checked, before the first thing moves. Answers the tree, which may have moved by then. */
  begin?: () => Promise<Sandbox>
}

export async function merge(server: ServerFiles, staged: Sandbox, target: Segments, options: MergeOptions) {
  using _held = server.lock.share()
  const records = await recordsBesides(server, staged, target, options)
  using _room = await roomForParents(server, [[...target, '']], async (parents) => {
    options.signal.throwIfAborted()
    await options.clear?.(sum(parents, records))
  })
  options.signal.throwIfAborted()
  using recordRoom = await holdRoom(server, records)
  using into = server.files.mkdirs(target)
  const isSmall = await checkAll(server, staged, into, options)
  options.signal.throwIfAborted()
  const tree = (await options.begin?.()) ?? staged
  using from = tree.openDirectory([])
  if (isSmall) moveAtOnce(server, tree, target, [...plan(from, into)].filter(isStep))
  else await moveAll(server, tree, target, { ...options, recordRoom }, plan(from, into))
  await fsyncDirectory(into)
  server.usage.touch()
}

interface RecordRoom extends Disposable {
  /** Undefined where there is not enough left of it: more has come into the way than there was. */
  for(items: { path: string }[]): Room | undefined
}

/** Room for the records of what is replaced: nobody else gets it while the tree moves. */
async function holdRoom({ usage }: ServerFiles, records: Amount): Promise<RecordRoom> {
  const room = isSome(records) ? await usage.room(records) : undefined
  let left = records
  return {
    for(items) {
      const wanted = recordsOf(items)
      if (!room || wanted.bytes > left.bytes || wanted.entries > left.entries) return undefined
      left = sum(left, minus(wanted))
      return room
    },
    [Symbol.dispose]: () => room?.[Symbol.dispose](),
  }
}

/** Refuses what will be refused, and answers what the records take of what is replaced, before any room is made. */
async function recordsBesides(
  server: ServerFiles,
  tree: Sandbox,
  target: Segments,
  options: MergeOptions,
): Promise<Amount> {
  const { depth, stats } = server.files.reach(target)
  // What is in the way is refused here.
  if (stats?.isDirectory() === false) server.files.mkdirs(target)[Symbol.dispose]()
  if (depth < target.length) return NOTHING
  using into = server.files.openDirectory(target)
  let records = NOTHING
  let [moves, group] = [0, [] as { path: string }[]]
  await checkAll(server, tree, into, options, ({ replaced }) => {
    if (replaced) group.push(replaced)
    if (++moves % GROUP_MOVES > 0 || group.length === 0) return
    records = sum(records, recordsOf(group))
    group = []
  })
  return group.length > 0 ? sum(records, recordsOf(group)) : records
}

/** Answers whether all of it can be moved in one turn, replacing nothing. */
async function checkAll(
  { files }: ServerFiles,
  tree: Sandbox,
  into: Directory,
  { overwrite, signal }: MergeOptions,
  onStep?: (step: Step) => void,
): Promise<boolean> {
  using from = tree.openDirectory([])
  const turn = createTurns(files.share, signal)
  const depth = splitPath(into.path).length
  let names = 0
  for (const step of plan(from, into)) {
    if (turn.due()) await turn.take()
    names += step === LOOKED_AT ? 1 : depth + step.path.length
    if (step !== LOOKED_AT && step.replaced && !overwrite) throw alreadyThere(step.replaced.path)
    if (step !== LOOKED_AT) onStep?.(step)
  }
  return !overwrite && names <= NAMES_A_TURN
}

/** Checks first, since the names were free in an earlier turn. */
function moveAtOnce(server: ServerFiles, tree: Sandbox, target: Segments, steps: Step[]): void {
  const taken = steps.find(({ replaced }) => replaced)
  if (taken?.replaced) throw alreadyThere(taken.replaced.path)
  const moved: Moved[] = []
  try {
    for (const { path, isThere } of steps) {
      using source = tree.openPlace(path)
      using place = server.files.openNewPlace([...target, ...path], { anyName: true })
      if (isThere) unlinkAt(source.parent, source.name)
      else moveToNewName({ folder: source.parent, name: source.name }, place.parent, place.name)
      moved.push({ path, stats: statsIfThere(place.parent, place.name) })
    }
  } catch (error) {
    for (const one of moved.reverse()) takeBack(server, tree, target, one)
    server.usage.touch()
    throw error
  }
}

interface Moved {
  path: Segments
  /** Just after it was moved. */
  stats: BigIntStats | undefined
}

/** What cannot be taken back stays where it is, and so does what a game has put there or written to since. */
function takeBack(server: ServerFiles, tree: Sandbox, target: Segments, { path, stats }: Moved): void {
  try {
    using place = server.files.openPlace([...target, ...path])
    using source = tree.openPlace(path)
    const there = statsIfThere(place.parent, place.name)
    if (!stats || there?.ino !== stats.ino || there.ctimeNs !== stats.ctimeNs) return
    renameNewAt(place.parent, place.name, source.parent, source.name)
    if (!there.isDirectory()) return
    let isNewer = true
    try {
      // Only now, when nobody can come to it any more.
      isNewer = holdsNewer(tree, path, stats.ctimeNs)
    } finally {
      // A game that missed it may have made another one there: both stay.
      if (isNewer)
        moveToFreeName(
          { folder: source.parent, name: source.name },
          place.parent,
          freeNames(place.name, true, 'unpacked', true),
        )
    }
  } catch (error) {
    server.onUnexpected(error)
  }
}

/** Whether something in the directory has changed since then, or is new. */
function holdsNewer(tree: Sandbox, path: Segments, sinceNs: bigint): boolean {
  using entries = tree.openWalk(path)
  for (let found = entries.next(); found; found = entries.next()) if (found.stats.ctimeNs >= sinceNs) return true
  return false
}

async function moveAll(
  server: ServerFiles,
  tree: Sandbox,
  target: Segments,
  options: MergeOptions & { recordRoom: RecordRoom },
  steps: Iterable<Step | typeof LOOKED_AT>,
): Promise<void> {
  const turn = createTurns(server.files.share)
  const moved: Moved[] = []
  const move = (group: Step[]) => moveGroup(server, tree, target, { ...options, moved }, group)
  let group: Step[] = []
  try {
    for (const step of steps) {
      if (turn.due()) await turn.take()
      if (step !== LOOKED_AT) group.push(step)
      if (group.length < GROUP_MOVES) continue
      await move(group)
      group = []
    }
    await move(group)
  } catch (error) {
    // What was replaced stays so, with the old in the trash; and of too many moves no half is taken back.
    if (!options.overwrite && moved.length <= TAKEN_BACK_MAX)
      for (const one of moved.reverse()) {
        if (turn.due()) await turn.take()
        takeBack(server, tree, target, one)
      }
    server.usage.touch()
    throw error
  }
}

async function moveGroup(
  server: ServerFiles,
  tree: Sandbox,
  target: Segments,
  options: MergeOptions & { moved: Moved[]; recordRoom: RecordRoom },
  steps: Step[],
): Promise<void> {
  const replaced = steps.flatMap((step) => (step.replaced ? [step.replaced] : []))
  if (replaced[0] && !options.overwrite) throw alreadyThere(replaced[0].path)
  using batch =
    replaced.length > 0 ? await prepareReplaced(server, replaced, options.recordRoom.for(replaced)) : undefined
  const turn = createTurns(server.files.share)
  const late: Step[] = []
  let slots = 0
  for (const { path, replaced: old, isThere } of steps) {
    if (turn.due()) await turn.take()
    using source = tree.openPlace(path)
    using place = server.files.openNewPlace([...target, ...path], { anyName: true })
    const moved = { folder: source.parent, name: source.name }
    const slot = old ? slots++ : undefined
    const there = statsIfThere(place.parent, place.name)
    if (isThere && isSameFile(source.parent, source.name, place.parent, place.name))
      unlinkAt(source.parent, source.name)
    else if (!there) {
      moveToNewName(moved, place.parent, place.name)
      if (!options.overwrite && options.moved.length <= TAKEN_BACK_MAX)
        options.moved.push({ path, stats: statsIfThere(place.parent, place.name) })
    } else if (batch && slot !== undefined) moveReplacing(moved, place.parent, place.name, batch, slot)
    else late.push({ path, replaced: { path: childPath(place.parent.path, place.name), kind: kindOf(there) } })
  }
  if (batch) await fsyncDirectory(batch.folder)
  // What came since they were looked at.
  if (late.length > 0) await moveGroup(server, tree, target, options, late)
}

const alreadyThere = (path: string) => fail('already_exists', `${JSON.stringify(path)} already exists.`)

/** In place of a step for what needs none, so that whoever asks for steps can let others have a turn. */
const LOOKED_AT = Symbol('looked at')
const isStep = (step: Step | typeof LOOKED_AT): step is Step => step !== LOOKED_AT

/** What was given may be moved away before the next is asked for. */
function* plan(from: Directory, into: Directory): Generator<Step | typeof LOOKED_AT> {
  using names = opendirSync(from.address, { encoding: 'latin1', bufferSize: READ_AHEAD })
  for (let entry = names.readSync(); entry; entry = names.readSync()) {
    const name = nameFromLatin1(entry.name)
    const there = statsIfThere(into, name)
    const own = there && statsIfThere(from, name)
    if (there?.isDirectory() && own?.isDirectory()) {
      yield LOOKED_AT
      using source = openChild(from, name)
      using target = openChild(into, name)
      yield* plan(source, target)
    } else {
      const path = splitPath(childPath(from.path, name))
      if (there && own?.ino === there.ino && own.dev === there.dev) yield { path, replaced: undefined, isThere: true }
      else yield { path, replaced: there && { path: childPath(into.path, name), kind: kindOf(there) } }
    }
  }
}
