// A trash with very many deletions, and one deletion of very many files: no page, sweep or restore takes a long turn.
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { watchTurns } from '../../../../test/support/turns.ts'
import { newId } from '../../../kit/ids.ts'
import { request, serverId, startServer } from '../server.testing.ts'
import { planFreeing } from './trash-freeing.ts'

const DELETIONS = 3000
const ITEMS = 20_000

test('many deletions are listed, planned for and looked through for old ones without a long turn', async (t) => {
  const { agent, server, folders } = await startServer(t, { 'a.txt': 'a' })
  await agent.remove(request({ root: '/', files: ['a.txt'] }))
  const [first = ''] = readdirSync(folders.trash)
  for (let i = 0; i < DELETIONS; i++)
    cpSync(join(folders.trash, first), join(folders.trash, newId('trs')), { recursive: true })
  using watch = watchTurns()
  await watch.ready
  const page = await agent.listTrash({ serverId, limit: 100 })
  assert.equal(page.items.length, 100)
  const [oldest] = (await agent.listTrash({ serverId, limit: 100, after: `${first}0000` })).items
  assert.equal(oldest, undefined, 'the first deletion is the last of the list')
  assert.ok(await planFreeing([server.trash], { bytes: DELETIONS * 4096, entries: 0 }))
  await server.trash.expire()
  assert.equal(readdirSync(folders.trash).length, DELETIONS + 1)
  assert.deepEqual(await watch.longTurns(), [])
})

test('one deletion of very many files is listed, restored from and emptied without a long turn', async (t) => {
  const { agent, folders } = await startServer(t, { 'a.txt': 'a' })
  await agent.remove(request({ root: '/', files: ['a.txt'] }))
  const [batch = ''] = readdirSync(folders.trash)
  const recordFile = join(folders.trash, batch, 'record.json')
  const record = JSON.parse(readFileSync(recordFile, 'utf8'))
  record.items = Array.from({ length: ITEMS }, (_, index) => ({ path: `/world/${index}`, kind: 'file' }))
  writeFileSync(recordFile, JSON.stringify(record))
  for (let index = 1; index < ITEMS; index++)
    writeFileSync(join(folders.trash, batch, index.toString(16).padStart(4, '0')), '')
  mkdirSync(join(folders.files, 'world'))
  using watch = watchTurns()
  await watch.ready
  const last = `${batch}${(ITEMS - 3).toString(16).padStart(4, '0')}`
  const { items, next } = await agent.listTrash({ serverId, limit: 100, after: last })
  assert.deepEqual([items.map(({ path }) => path), next], [[`/world/${ITEMS - 2}`, `/world/${ITEMS - 1}`], null])
  assert.equal((await agent.restoreTrash(request({ trashId: items[1]?.id ?? '' }))).path, `/world/${ITEMS - 1}`)
  assert.equal((await agent.listTrash({ serverId, limit: 100 })).items.length, 100)
  await agent.emptyTrash(request({}))
  assert.deepEqual(readdirSync(folders.trash), [])
  assert.deepEqual(await watch.longTurns(), [])
})
