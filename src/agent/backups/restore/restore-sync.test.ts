import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { startAgent, temporaryFolder } from '../backups.testing.ts'
import { SYNCED_EARLY_FILES } from './restore-stage.ts'

/** From now on `sync` is this script first, and itself after that. */
function replaceSync(t: TestContext, folder: string, script: string): void {
  mkdirSync(folder)
  writeFileSync(join(folder, 'sync'), `#!/bin/sh\n${script}\nPATH=\${PATH#*:} exec sync "$@"\n`, { mode: 0o755 })
  const path = process.env.PATH
  process.env.PATH = [folder, path].join(delimiter)
  t.after(() => {
    process.env.PATH = path
  })
}

async function withManyFiles(t: TestContext) {
  const folder = temporaryFolder(t)
  const agent = await startAgent(folder)
  t.after(() => agent.stop())
  const from = agent.filesOf('srv_from')
  for (let index = 0; index < SYNCED_EARLY_FILES; index++) writeFileSync(join(from, `${index}`), `${index}`)
  const { backupId } = await agent.create('srv_from')
  const restore = () => agent.restore('srv_to', backupId, { sourceServerId: 'srv_from' })
  return { folder, restore, to: agent.filesOf('srv_to') }
}

test('a disk that fails while many files are being made fails the restore, also where the last sync hears nothing of it', async (t) => {
  const { folder, restore, to } = await withManyFiles(t)
  const failed = join(folder, 'failed')
  replaceSync(t, join(folder, 'bin'), `if [ ! -e ${failed} ]; then : > ${failed}; exit 1; fi`)
  await assert.rejects(restore)
  assert.ok(existsSync(failed))
  assert.deepEqual(readdirSync(to), [])
})
