// Moves a finished tree into a directory: what is not there yet moves as a whole, directories that are on both sides are
// gone into, and a file in the way is refused or goes to the trash. All is checked before anything moves.
import { readdirSync } from 'node:fs'
import type { FileKind } from '../../../contract/agent-files.ts'
import { fail } from '../../../contract/errors.ts'
import { type Directory, fsyncDirectory, openChild, statsIfThere } from '../directory.ts'
import { kindOf } from '../entries.ts'
import { nameFromLatin1 } from '../names.ts'
import { prepareReplaced, roomForParents } from '../parents.ts'
import { childPath, type Segments, splitPath } from '../paths.ts'
import { moveReplacing, moveToNewName } from '../replace.ts'
import type { Sandbox } from '../sandbox.ts'
import type { ServerFiles } from '../server-files.ts'

interface Step {
  /** From the top of the staged tree. */
  path: Segments
  replaced: { path: string; kind: FileKind } | undefined
}

export async function merge(server: ServerFiles, tree: Sandbox, target: Segments, overwrite: boolean): Promise<void> {
  using _held = server.lock.share()
  using _room = await roomForParents(server, [...target, ''])
  using into = server.files.mkdirs(target)
  using from = tree.openDirectory([])
  const steps = [...plan(from, into)]
  const replaced = steps.flatMap((step) => (step.replaced ? [step.replaced] : []))
  if (replaced[0] && !overwrite) throw fail('already_exists', `${JSON.stringify(replaced[0].path)} exists already.`)
  using batch = replaced.length > 0 ? await prepareReplaced(server, replaced) : undefined
  let slot = 0
  for (const { path, replaced: old } of steps) {
    using source = tree.openPlace(path)
    using place = server.files.openNewPlace([...target, ...path], { anyName: true })
    const moved = { folder: source.parent, name: source.name }
    if (batch && old) moveReplacing(moved, place.parent, place.name, batch, slot++)
    else moveToNewName(moved, place.parent, place.name)
  }
  await fsyncDirectory(into)
  if (batch) await fsyncDirectory(batch.folder)
  server.usage.touch()
}

function* plan(from: Directory, into: Directory): Generator<Step> {
  for (const latin1 of readdirSync(from.address, { encoding: 'latin1' })) {
    const name = nameFromLatin1(latin1)
    const there = statsIfThere(into, name)
    if (there?.isDirectory() && statsIfThere(from, name)?.isDirectory()) {
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
