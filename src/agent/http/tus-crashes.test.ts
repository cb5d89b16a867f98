// Uploads by tus across restarts, crashes and broken connections.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { serverId, startAgent, until } from './agent.testing.ts'
import { begun, call, create, MIB, offsetOf, patch, sha1 } from './tus.testing.ts'

const idOf = (url: string) => url.slice(url.lastIndexOf('/') + 1)

test('Space in the quota for the whole length is taken when the upload is created, and is held across restarts, so that no other upload can take it.', async (t) => {
  const agent = await startAgent(t)
  await agent.agent.files.setQuota({ serverId, quotaBytes: 10 * MIB, maxEntries: null })
  const content = randomBytes(6 * MIB)
  const url = await begun(agent, content.length)
  assert.equal((await patch(url, 0, content.subarray(0, 2 * MIB))).status, 204)
  await agent.restart()
  assert.equal((await agent.agent.files.usage({ serverId })).reservedBytes, 6 * MIB)
  assert.equal((await create(await agent.uploadUrl(), 5 * MIB)).code, 'quota_exceeded')
  assert.equal(await offsetOf(url), 2 * MIB)
  assert.equal((await patch(url, 2 * MIB, content.subarray(2 * MIB))).status, 204)
  assert.deepEqual(readFileSync(agent.at('a.bin')), content)
  assert.deepEqual(await agent.agent.files.usage({ serverId }), {
    usedBytes: 6 * MIB,
    trashBytes: 0,
    reservedBytes: 0,
    quotaBytes: 10 * MIB,
    usedEntries: 1,
    trashEntries: 0,
    reservedEntries: 0,
    maxEntries: null,
  })
})

test('the complete upload waits until there is room', async (t) => {
  const agent = await startAgent(t)
  const { files } = agent.agent
  await files.setQuota({ serverId, quotaBytes: 4 * MIB, maxEntries: null })
  writeFileSync(agent.at('old'), randomBytes(3 * MIB))
  await files.remove({ serverId, requestId: 'req_remove', root: '/', files: ['old'] })
  assert.equal((await files.usage({ serverId })).trashBytes, 3 * MIB + 8192, 'with its record')
  const content = randomBytes(2 * MIB)
  const url = await begun(agent, content.length)
  const [item] = (await files.listTrash({ serverId })).items
  await files.restoreTrash({ serverId, requestId: 'req_restore', trashId: item?.id ?? '' })
  const full = await patch(url, 0, content)
  assert.deepEqual([full.status, full.code], [409, 'quota_exceeded'])
  assert.deepEqual(agent.tree(), ['old'])
  await files.remove({ serverId, requestId: 'req_again', root: '/', files: ['old'] })
  assert.equal(await offsetOf(url), content.length)
  assert.deepEqual(readFileSync(agent.at('a.bin')), content)
  // What was told in an answer is told again after a while, where nobody has acknowledged it.
  const kinds = (await agent.facts())
    .map(({ kind }) => kind)
    .filter((kind) => !['file.deleted', 'file.restored'].includes(kind))
  assert.deepEqual(kinds, ['file.trash_freed', 'file.uploaded'])
})

test('After a crash in between, the next start completes this.', async (t) => {
  const agent = await startAgent(t)
  const url = await begun(agent, 4)
  const id = url.slice(url.lastIndexOf('/') + 1)
  // As the disk is when the process dies once the last byte is written: whole, not placed.
  writeFileSync(join(agent.folders.staging, `part-${id}`), 'full')
  await agent.restart()
  assert.equal(agent.read('a.bin'), 'full')
  assert.equal((await agent.facts()).length, 1)
  assert.equal(await offsetOf(url), 4, 'a sender that missed the answer hears that it is done')
  assert.deepEqual(agent.staged(), [`done-${id}.json`])
})

test('a record that a disk has damaged costs its own upload alone', async (t) => {
  const agent = await startAgent(t)
  const [damaged, other] = [await begun(agent, 4), await begun(agent, 4, 'b.bin')]
  const recordOf = (url: string) => join(agent.folders.staging, `part-${idOf(url)}.json`)
  const whole = JSON.parse(readFileSync(recordOf(damaged), 'utf8'))
  const { sizeBytes, ...part } = whole
  const shapes = [null, [], {}, 5, 'x', part, { ...whole, sizeBytes: -sizeBytes }, { ...whole, id: 'upl_other' }]
  for (const content of ['', '{"version":1,"id":"upl_', ...shapes.map((shape) => JSON.stringify(shape))]) {
    const url = await begun(agent, 4, 'c.bin')
    writeFileSync(recordOf(url), content)
    assert.equal((await call(url, 'HEAD')).status, 404, content)
    assert.equal(await offsetOf(other), 0)
  }
  writeFileSync(recordOf(damaged), '{')
  await agent.restart()
  assert.equal((await call(damaged, 'HEAD')).status, 404)
  assert.equal((await patch(other, 0, Buffer.from('full'))).status, 204)
  assert.equal(agent.read('b.bin'), 'full')
  assert.equal((await agent.agent.files.usage({ serverId })).reservedBytes, 0)
  assert.deepEqual(
    agent.staged().filter((name) => name.startsWith('part-')),
    [],
  )
})

test('the space of an upload whose record was damaged is free for its sender to begin anew', async (t) => {
  const agent = await startAgent(t)
  await agent.agent.files.setQuota({ serverId, quotaBytes: 10 * MIB, maxEntries: null })
  const recordOf = (url: string) => join(agent.folders.staging, `part-${idOf(url)}.json`)
  const damaged = await begun(agent, 6 * MIB)
  writeFileSync(recordOf(damaged), '{bad')
  assert.equal((await call(damaged, 'DELETE')).status, 404)
  assert.equal((await create(await agent.uploadUrl(), 6 * MIB, 'again.bin')).status, 201)
})

test('a record that cannot be removed keeps no other upload from being taken up', async (t) => {
  const agent = await startAgent(t)
  const urls = [await begun(agent, MIB), await begun(agent, MIB, 'b.bin'), await begun(agent, MIB, 'c.bin')]
  const ids = urls.map(idOf).sort()
  const blocked = join(agent.folders.staging, `part-${ids[0]}.json`)
  unlinkSync(blocked)
  mkdirSync(blocked)
  await agent.restart()
  const others = urls.filter((url) => idOf(url) !== ids[0])
  for (const url of others) assert.equal(await offsetOf(url), 0)
  assert.equal((await agent.agent.files.usage({ serverId })).reservedBytes, 2 * MIB)
})

test('an upload that is finished again after a crash is told of once, under an id of its own', async (t) => {
  const agent = await startAgent(t)
  const url = await begun(agent, 4)
  const id = url.slice(url.lastIndexOf('/') + 1)
  const part = join(agent.folders.staging, `part-${id}`)
  const ids = async () => (await agent.facts()).map((fact) => fact.id)
  const told = [id.replace('upl_', 'act_')]
  // As the disk is when the process dies once the file is in its place, before the fact.
  writeFileSync(part, 'full')
  renameSync(part, agent.at('a.bin'))
  await agent.restart()
  assert.deepEqual(await ids(), told)
  // When it dies between the fact and the record, control may have recorded and forgotten the fact, or not.
  for (const isForgotten of [false, true]) {
    if (isForgotten) await agent.agent.facts.forget({ ids: told })
    renameSync(join(agent.folders.staging, `done-${id}.json`), `${part}.json`)
    await agent.restart()
    assert.deepEqual(await ids(), told, 'the same id, so that control knows it again')
  }
  assert.equal(await offsetOf(url), 4)
  assert.equal(await offsetOf(url), 4)
  assert.deepEqual(await ids(), told)
})

test('an upload that somebody has taken away since it was placed is told of all the same', async (t) => {
  const agent = await startAgent(t)
  const url = await begun(agent, 4)
  rmSync(join(agent.folders.staging, `part-${url.slice(url.lastIndexOf('/') + 1)}`))
  await agent.restart()
  const [fact] = await agent.facts()
  assert.deepEqual([fact?.properties.files, fact?.properties.sizeBytes], [['a.bin'], 4])
})

test('nor if the connection or the process dies in the middle of it', async (t) => {
  const agent = await startAgent(t)
  const content = randomBytes(MIB)
  const url = await begun(agent, content.length)
  await patch(url, 0, content.subarray(0, 1000))
  const part = join(agent.folders.staging, `part-${url.slice(url.lastIndexOf('/') + 1)}`)
  const cut = httpRequest(url, {
    method: 'PATCH',
    headers: {
      'tus-resumable': '1.0.0',
      'upload-offset': '1000',
      'content-type': 'application/offset+octet-stream',
      'content-length': String(content.length - 1000),
      'upload-checksum': sha1(content.subarray(1000)),
    },
  })
  cut.on('error', () => {})
  cut.write(content.subarray(1000, 800_000))
  await until(() => statSync(part).size > 1000)
  cut.destroy()
  assert.equal(await offsetOf(url), 1000)
  writeFileSync(`${part}.from-1000`, '')
  truncateSync(part, 5000)
  await agent.restart()
  assert.equal(await offsetOf(url), 1000)
})

test('a service that stops waits for no sender, and keeps what has come', async (t) => {
  const agent = await startAgent(t)
  const content = randomBytes(MIB)
  const url = await begun(agent, content.length)
  const part = join(agent.folders.staging, `part-${url.slice(url.lastIndexOf('/') + 1)}`)
  const sending = httpRequest(url, {
    method: 'PATCH',
    headers: { 'tus-resumable': '1.0.0', 'upload-offset': '0', 'content-type': 'application/offset+octet-stream' },
  })
  sending.on('error', () => {})
  t.after(() => sending.destroy())
  sending.write(content.subarray(0, 600_000))
  await until(() => statSync(part).size > 0)
  const answered = once(sending, 'response')
  await agent.restart()
  const [answer] = await answered
  assert.equal(answer.statusCode, 503)
  answer.resume()
  const offset = await offsetOf(url)
  assert.ok(offset > 0 && offset <= 600_000)
  assert.equal((await patch(url, offset, content.subarray(offset))).status, 204)
  assert.deepEqual(readFileSync(agent.at('a.bin')), content)
})
