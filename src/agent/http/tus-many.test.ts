// Uploads by tus in numbers: what is done costs nothing until its time is over, and then little.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { watchTurns } from '../../../test/support/turns.ts'
import { FINISHED_UPLOADS_KEPT, UNFINISHED_UPLOADS_MAX } from '../../contract/fixed-limits.ts'
import { newId } from '../../kit/ids.ts'
import { startAgent, type TestAgent, until } from './agent.testing.ts'
import { begun, create, offsetOf, patch } from './tus.testing.ts'

const MANY = 3000
const DAYS_AGO = (days: number) => new Date(Date.now() - days * 24 * 3600_000)

/** Finishes one upload, and makes many others of what it leaves. */
async function finishMany(agent: TestAgent, count: number, at: Date): Promise<string> {
  const url = await begun(agent, 4)
  await patch(url, 0, Buffer.from('full'))
  const id = url.slice(url.lastIndexOf('/') + 1)
  const [name = ''] = agent.staged().filter((staged) => staged.includes(id))
  const record = readFileSync(join(agent.folders.staging, name), 'utf8')
  for (let i = 0; i < count; i++) {
    const other = newId('upl')
    const file = join(agent.folders.staging, name.replace(id, other))
    writeFileSync(file, record.replaceAll(id, other))
    utimesSync(file, at, at)
  }
  return url
}

for (const [state, at] of [
  ['whose time is over', DAYS_AGO(2)],
  ['that are kept', DAYS_AGO(0.5)],
] as const) {
  test(`a start with ${MANY} finished uploads ${state} has no long turn`, async (t) => {
    const agent = await startAgent(t)
    const url = await finishMany(agent, MANY, at)
    using watch = watchTurns()
    await watch.ready
    await agent.restart()
    assert.equal(await offsetOf(url), 4, 'a sender that missed the answer hears that all of it is here')
    const left = state === 'that are kept' ? MANY + 1 : 1
    await until(() => readdirSync(agent.folders.staging).length === left)
    assert.deepEqual(await watch.longTurns(), [])
  })
}

test('Of the uploads of a server that have ended, 10,000 are known: the oldest go first', async (t) => {
  const agent = await startAgent(t)
  await finishMany(agent, FINISHED_UPLOADS_KEPT + 100, DAYS_AGO(0.5))
  await agent.restart()
  await until(() => readdirSync(agent.folders.staging).length === FINISHED_UPLOADS_KEPT)
  const newest = await begun(agent, 4)
  await patch(newest, 0, Buffer.from('full'))
  assert.equal(readdirSync(agent.folders.staging).length, FINISHED_UPLOADS_KEPT)
  assert.equal(await offsetOf(newest), 4)
})

test('At most 1,000 uploads of a server can be unfinished, also where many begin at once.', async (t) => {
  const agent = await startAgent(t)
  const url = await agent.uploadUrl()
  for (let i = 0; i < UNFINISHED_UPLOADS_MAX - 5; i += 35)
    await Promise.all(
      Array.from({ length: Math.min(35, UNFINISHED_UPLOADS_MAX - 5 - i) }, (_, at) => create(url, 4, `f${i + at}`)),
    )
  const replies = await Promise.all(Array.from({ length: 20 }, (_, at) => create(url, 4, `last${at}`)))
  const refused = replies.filter(({ code }) => code === 'server_busy').length
  assert.deepEqual([refused, replies.filter(({ status }) => status === 201).length], [15, 5])
})
