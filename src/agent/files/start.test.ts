import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { until } from '../../../test/support/until.ts'
import { layout } from '../layout.ts'
import { createAgentFiles } from './index.ts'

const LONG_AGO = new Date('2020-01-01')

/** The disk notes when a folder was last read. */
const isRead = (folder: string) => statSync(folder).atimeMs !== LONG_AGO.getTime()
const markUnread = (folder: string) => utimesSync(folder, LONG_AGO, statSync(folder).mtime)

it('a start looks into the trash of each server and into none of its trees', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'gamekeeper-start-'))
  t.after(() => rmSync(dataDir, { recursive: true }))
  const folders = layout(dataDir)
  const [first, last] = [folders.server('srv_a'), folders.server('srv_b')]
  const world = join(first.files, 'world')
  mkdirSync(world, { recursive: true })
  writeFileSync(join(world, 'level.dat'), 'a'.repeat(5000))
  mkdirSync(last.trash, { recursive: true })
  markUnread(world)
  readdirSync(world)
  if (!isRead(world)) return t.skip('the disk does not note when a folder is read')
  for (const folder of [world, last.trash]) markUnread(folder)

  const files = createAgentFiles({ layout: folders, onUnexpected: assert.ifError })
  await files.settle()
  await files.start()
  await until(async () => isRead(last.trash))
  assert.ok(!isRead(world))
  // What is used is counted when somebody asks.
  const { usedBytes } = await files.server('srv_a').usage.read()
  assert.ok(usedBytes >= 5000)
  assert.ok(isRead(world))
  await files.stop()
})
