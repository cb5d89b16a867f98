// Moves a finished tree into a directory: what is not there yet moves as a whole, directories that are on both sides are
// gone into, and a file in the way is refused or goes to the trash. All is checked before anything moves. Both trees may
// be as large as a server: nothing is kept of them but a group of moves, and others have their turn between groups.
import { opendirSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FileKind } from '../../../contract/agent-files.ts'
import { fail } from '../../../contract/errors.ts'
import { createTurns } from '../../turns.ts'
import { type Directory, fsyncDirectory, openChild, statsIfThere } from '../directory.ts'
import { kindOf } from '../entries.ts'
import { nameFromLatin1 } from '../names.ts'
import { prepareReplaced, roomForParents } from '../parents.ts'
import { childPath, type Segments, splitPath } from '../paths.ts'
import { moveReplacing, moveToNewName } from '../replace.ts'
import type { Sandbox } from '../sandbox.ts'
import type { ServerFiles } from '../server-files.ts'

/** Moved without a turn in between, so that no request of ours comes between checking a name and taking it. */
const GROUP_MOVES = 1024
const READ_AHEAD = 512

interface Step {
  /** From the top of the staged tree. */
  path: Segments
  replaced: { path: string; kind: FileKind } | undefined
}

interface MergeOptions {
  overwrite: boolean
  /** Not looked at any more once the first thing has moved: half of an archive is no answer. */
  signal: AbortSignal
}

export async function merge(server: ServerFiles, tree: Sandbox, target: Segments, options: MergeOptions) {
  using _held = server.lock.share()
  using _room = await roomForParents(server, [...target, ''])
  using into = server.files.mkdirs(target)
  using from = tree.openDirectory([])
  const isSmall = await check(server, from, into, options)
  options.signal.throwIfAborted()
  if (isSmall) await moveGroup(server, tree, target, options, [...plan(from, into)].filter(isStep))
  else await moveAll(server, tree, target, options, plan(from, into))
  await fsyncDirectory(into)
  server.usage.touch()
}

/** Answers whether one group takes it all. */
async function check(
  { files }: ServerFiles,
  from: Directory,
  into: Directory,
  { overwrite, signal }: MergeOptions,
): Promise<boolean> {
  const turn = createTurns(files.share, signal)
  let count = 0
  for (const step of plan(from, into)) {
    if (turn.due()) await turn.take()
    if (step === LOOKED_AT) continue
    if (step.replaced && !overwrite) throw alreadyThere(step.replaced.path)
    count++
  }
  return count <= GROUP_MOVES
}

async function moveAll(
  server: ServerFiles,
  tree: Sandbox,
  target: Segments,
  options: MergeOptions,
  steps: Iterable<Step | typeof LOOKED_AT>,
): Promise<void> {
  const turn = createTurns(server.files.share)
  let group: Step[] = []
  for (const step of steps) {
    if (turn.due()) await turn.take()
    if (step !== LOOKED_AT) group.push(step)
    if (group.length < GROUP_MOVES) continue
    await moveGroup(server, tree, target, options, group)
    await nextTurn()
    group = []
  }
  await moveGroup(server, tree, target, options, group)
}

async function moveGroup(
  server: ServerFiles,
  tree: Sandbox,
  target: Segments,
  { overwrite }: MergeOptions,
  steps: Step[],
): Promise<void> {
  const replaced = steps.flatMap((step) => (step.replaced ? [step.replaced] : []))
  if (replaced[0] && !overwrite) throw alreadyThere(replaced[0].path)
  using batch = replaced.length > 0 ? await prepareReplaced(server, replaced) : undefined
  let slot = 0
  for (const { path, replaced: old } of steps) {
    using source = tree.openPlace(path)
    using place = server.files.openNewPlace([...target, ...path], { anyName: true })
    const moved = { folder: source.parent, name: source.name }
    if (batch && old) moveReplacing(moved, place.parent, place.name, batch, slot++)
    else moveToNewName(moved, place.parent, place.name)
  }
  if (batch) await fsyncDirectory(batch.folder)
}

const alreadyThere = (path: string) => fail('already_exists', `${JSON.stringify(path)} exists already.`)

/** In place of a step for what needs none, so that whoever asks for steps can let others have a turn. */
const LOOKED_AT = Symbol('looked at')
const isStep = (step: Step | typeof LOOKED_AT): step is Step => step !== LOOKED_AT

/** What was given may be moved away before the next is asked for. */
function* plan(from: Directory, into: Directory): Generator<Step | typeof LOOKED_AT> {
  using names = opendirSync(from.address, { encoding: 'latin1', bufferSize: READ_AHEAD })
  for (let entry = names.readSync(); entry; entry = names.readSync()) {
    const name = nameFromLatin1(entry.name)
    const there = statsIfThere(into, name)
    if (there?.isDirectory() && statsIfThere(from, name)?.isDirectory()) {
      yield LOOKED_AT
      using source = openChild(from, name)
      using target = openChild(into, name)
      yield* plan(source, target)
    } else {
      const path = childPath(from.path, name)
      const replaced = there && { path: childPath(into.path, name), kind: kindOf(there) }
      yield { path: splitPath(path), replaced }
    }
  }
}
