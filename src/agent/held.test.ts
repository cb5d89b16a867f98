// Folders of a server that are put aside while something else is at them: what was under way ends first or finds nothing,
// and nothing makes a second, empty server in the old place.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { FilesOfAgent } from './files/index.ts'
import { serverId, startAgent, until } from './http/agent.testing.ts'

const FILES = 400

/** A batch that a process that died has begun to empty: taking it away takes many turns of the event loop. */
function fillEmptying(trash: string): void {
  const folder = join(trash, 'emptying-trs_00000000000000000000000000', '0')
  mkdirSync(folder, { recursive: true })
  for (let index = 0; index < FILES; index++) writeFileSync(join(folder, String(index)), '')
}

test('a sweep that is under way makes no second folder for a server that is put aside', async (t) => {
  const { agent, folders, at } = await startAgent(t)
  writeFileSync(at('world.dat'), 'years of work')
  await agent.files.usage({ serverId })
  fillEmptying(folders.trash)
  const sweeping = (agent.files as FilesOfAgent).sweep()
  await agent.servers.hold({ serverId })
  await sweeping
  assert.ok(!existsSync(folders.root))
  await agent.servers.unhold({ serverId })
  assert.equal(readFileSync(at('world.dat'), 'utf8'), 'years of work')
})

test('of a server that was put aside by a process that died at once, the prints go when that is done again', async (t) => {
  const { agent, dataDir, folders } = await startAgent(t)
  await agent.servers.hold({ serverId })
  writeFileSync(join(dataDir, 'prints'), 'kept')
  await agent.servers.hold({ serverId })
  await until(() => !existsSync(join(dataDir, 'prints')))
  assert.ok(!existsSync(folders.root))
})

test('an emptied trash is told of also when the server is put aside meanwhile', async (t) => {
  const { agent, folders, at } = await startAgent(t)
  mkdirSync(at('old'))
  for (let index = 0; index < FILES; index++) writeFileSync(at(`old/${index}`), '')
  await agent.files.remove({ serverId, requestId: 'req_1', root: '/', files: ['old'] })
  const emptying = agent.files.emptyTrash({ serverId, requestId: 'req_2' })
  let isEmptied = false
  void emptying.then(() => {
    isEmptied = true
  })
  await agent.servers.hold({ serverId })
  assert.ok(isEmptied, 'put aside while its trash was being emptied')
  await emptying
  assert.ok(!existsSync(folders.root))
})

test('folders that are there twice, one of them without a file, come back as the other', async (t) => {
  const { agent, dataDir, folders, at } = await startAgent(t)
  writeFileSync(at('world.dat'), 'years of work')
  await agent.servers.hold({ serverId })
  for (const folder of [folders.root, folders.trash, folders.staging]) mkdirSync(folder)
  await agent.servers.unhold({ serverId })
  assert.equal(readFileSync(at('world.dat'), 'utf8'), 'years of work')
  assert.deepEqual(readdirSync(join(dataDir, 'held')), [])
})
