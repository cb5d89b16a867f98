// Times before 1970, which archives of old games have.
import assert from 'node:assert/strict'
import { lstatSync, lutimesSync, mkdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { testAgent } from '../backups.testing.ts'
import { LARGE_BYTES } from './restore-build.ts'

const NAMES = ['directory/small', 'large', 'link', 'directory']
const SECONDS = '-315619200.25'
const MTIME_NS = -315619200_250_000_000n

test('a time before 1970 is restored as it was', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf('srv_a')
  mkdirSync(join(root, 'directory'))
  writeFileSync(join(root, 'directory/small'), 'small')
  writeFileSync(join(root, 'large'), Buffer.alloc(LARGE_BYTES + 1, 'large'))
  symlinkSync('large', join(root, 'link'))
  for (const name of NAMES) (name === 'link' ? lutimesSync : utimesSync)(join(root, name), SECONDS, SECONDS)
  const { backupId } = await agent.create('srv_a')
  for (const name of ['directory', 'large', 'link']) rmSync(join(root, name), { recursive: true })
  await agent.restore('srv_a', backupId)
  for (const name of NAMES) assert.equal(lstatSync(join(root, name), { bigint: true }).mtimeNs, MTIME_NS, name)
})
