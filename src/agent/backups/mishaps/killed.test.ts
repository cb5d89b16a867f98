// A restore that is killed before each of its renames in turn: the swap is a handful of them, and random instants seldom
// meet it.
import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { newId } from '../../../kit/ids.ts'
import { assertSameTree, isSameTree, snapshot, startAgent, temporaryFolder } from '../backups.testing.ts'
import { killDuring } from './killed.testing.ts'

function fill(root: string, text: string): void {
  rmSync(root, { recursive: true, force: true })
  mkdirSync(join(root, 'world'), { recursive: true })
  for (const name of ['a', 'b', 'world/c', `world/only ${text}`]) writeFileSync(join(root, name), `${text} ${name}`)
}

it('A crash at any instant leaves the old tree or the new one: an interrupted swap is completed at the next start.', async (t) => {
  const folder = temporaryFolder(t)
  const first = await startAgent(folder)
  const root = first.filesOf('srv_a')
  fill(root, 'new')
  const { backupId } = await first.create('srv_a')
  const wanted = snapshot(root)
  await first.stop()
  const work = {
    kind: 'backups.restore',
    backupId,
    sourceServerId: 'srv_a',
    mode: 'replace',
    paths: null,
    safetyBackupId: null,
  } as const
  const once = () => ({ ...work, jobId: newId('job') })
  const outcomes = { old: 0, new: 0 }
  for (let atRename = 1, isDone = false; !isDone; atRename++) {
    fill(root, 'old')
    const before = snapshot(root)
    isDone = await killDuring(folder, 'srv_a', once(), { atRename })
    const agent = await startAgent(folder)
    const after = snapshot(root)
    await agent.stop()
    const isNew = isSameTree(after, wanted)
    assertSameTree(after, isNew ? wanted : before)
    outcomes[isNew ? 'new' : 'old']++
  }
  // Before the journal was committed, and after it.
  assert.ok(outcomes.old > 0 && outcomes.new > 4, JSON.stringify(outcomes))
})
