import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { BACKUP_PREVIEWS } from '../../../contract/fixed-limits.ts'
import { startAgent, temporaryFolder } from '../backups.testing.ts'
import { countTree } from './preview.ts'

test('A count that takes too long says what it has found so far, and that there is more.', async (t) => {
  const agent = await startAgent(temporaryFolder(t))
  t.after(agent.stop)
  const folder = agent.filesOf('srv_many')
  for (let directory = 0; directory < 20; directory++) {
    mkdirSync(join(folder, `d${directory}`))
    for (let file = 0; file < 100; file++) writeFileSync(join(folder, `d${directory}`, `f${file}.log`), 'x')
  }
  const { files } = agent.files.server('srv_many')
  const { signal } = new AbortController()
  const whole = await countTree(files, '*.log', signal)
  assert.deepEqual([whole.leftOut.fileCount, whole.kept.fileCount, whole.isComplete], [2000, 0, true])
  const cut = await countTree(files, '*.log', signal, 0)
  assert.equal(cut.isComplete, false)
  assert.ok(cut.leftOut.fileCount < 2000, String(cut.leftOut.fileCount))
})

test('counts of one server wait for each other, end with their caller, and are refused beyond what may wait', async (t) => {
  const agent = await startAgent(temporaryFolder(t))
  t.after(agent.stop)
  for (let file = 0; file < 500; file++) writeFileSync(join(agent.filesOf('srv_busy'), `f${file}`), 'x')
  const leaving = new AbortController()
  const most = 1 + BACKUP_PREVIEWS.waitingPerServer
  const ask = (signal: AbortSignal) => agent.backups.preview({ serverId: 'srv_busy', ignored: '' }, signal)
  const asked = Array.from({ length: most }, () => ask(leaving.signal))
  await assert.rejects(ask(new AbortController().signal), { code: 'rate_limited' })
  leaving.abort(new Error('left'))
  const ends = await Promise.allSettled(asked)
  assert.ok(ends.slice(1).every(({ status }) => status === 'rejected'))
  assert.equal((await ask(new AbortController().signal)).kept.fileCount, 500)
})
