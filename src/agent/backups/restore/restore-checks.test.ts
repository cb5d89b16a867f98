import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { newId } from '../../../kit/ids.ts'
import { snapshot, type Tree, testAgent } from '../backups.testing.ts'

const FILES = 150
const contentsOf = (tree: Tree) => Object.entries(tree).map(([path, { is }]) => `${path} ${is}`)
const descriptors = () => readdirSync('/proc/self/fd').length

it('a restore that is cancelled while files are compared changes nothing and lets go of everything', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf('srv_a')
  for (let number = 0; number < FILES; number++) writeFileSync(join(root, `f${number}`), randomBytes(200_000))
  const { backupId } = await agent.create('srv_a')
  const saved = contentsOf(snapshot(root))
  const restore = {
    kind: 'backups.restore' as const,
    jobId: newId('job'),
    backupId,
    sourceServerId: 'srv_a',
    mode: 'replace' as const,
    paths: null,
    safetyBackupId: null,
  }
  // Other content and other times, and the right size: every file has to be looked into.
  const disturb = () => {
    for (const [number, name] of readdirSync(root).entries()) {
      if (number % 3 === 0) writeFileSync(join(root, name), randomBytes(200_000))
      utimesSync(join(root, name), new Date(number), new Date(number))
    }
  }
  await agent.restore('srv_a', backupId)
  const before = descriptors()
  let cancelled = 0
  for (let turns = 0; turns < 60; turns += 6) {
    disturb()
    const live = contentsOf(snapshot(root))
    const abort = new AbortController()
    const running = agent.run(restore, 'srv_a', abort.signal)
    const ended = running.then(
      () => true,
      () => false,
    )
    for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate)
    abort.abort()
    const isDone = await ended
    if (!isDone) cancelled++
    assert.deepEqual(contentsOf(snapshot(root)), isDone ? saved : live)
    assert.equal(descriptors(), before)
  }
  assert.ok(cancelled > 0)
  disturb()
  await agent.restore('srv_a', backupId)
  assert.deepEqual(contentsOf(snapshot(root)), saved)
})
