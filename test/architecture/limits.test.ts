// docs/limits.md says what the code says, and what it says of turns is what the watchdog allows.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { BOUNDED, LIMITS_FILE, limitsDocument } from '../../scripts/limits.ts'
import { OPERATIONS } from '../../src/contract/index.ts'
import type { Operation } from '../../src/contract/operation.ts'
import { createMirrorPlace } from '../support/mirror.ts'
import { addressOf, createThings, OPERATIONS_ENV, UNASKABLE, type Wanted, wantedFor } from '../support/operations.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { LONGEST_TURN_MS, watchTurns } from '../support/turns.ts'

const MIB = 1024 * 1024
/** A hundred such requests fit into a small machine together. */
const HELD_MAX = 64 * MIB

test('docs/limits.md is what `npm run limits` writes', () => {
  assert.equal(readFileSync(LIMITS_FILE, 'utf8'), limitsDocument())
})

test('no operation may hold the event loop for longer than the watchdog allows, or hold more than a machine has', () => {
  const tooMuch = BOUNDED.filter(({ bound }) => bound.turnMs > LONGEST_TURN_MS || bound.heldBytes > HELD_MAX)
  assert.deepEqual(tooMuch, [])
})

const place = createMirrorPlace()
let service: TestService
before(async () => {
  service = await startTestService({ env: OPERATIONS_ENV, mirror: place.target })
})
after(async () => {
  await service.stop()
  place.remove()
})

test('every operation stays within the turns that it states', async () => {
  const things = createThings(service)
  const exceeding: object[] = []
  using watch = watchTurns()
  await watch.ready
  const longTurns = async (operation: Operation, wanted: Wanted) => {
    const before = (await watch.longTurns()).length
    const { status } = await ask(operation, wanted)
    assert.ok(status < 500, `${operation.id} answered ${status}`)
    return (await watch.longTurns()).slice(before).filter(({ cpuMs }) => cpuMs > operation.bound.turnMs)
  }
  for (const operation of OPERATIONS) {
    if ((UNASKABLE as Record<string, unknown>)[operation.id] !== undefined) continue
    if ((await longTurns(operation, await wantedFor(operation, things))).length === 0) continue
    // The first request of all compiles the schemas; no data makes that longer.
    const long = await longTurns(operation, await wantedFor(operation, things))
    if (long.length > 0) exceeding.push({ id: operation.id, long })
  }
  assert.deepEqual(exceeding, [])
})

test('no JSON body of a megabyte keeps the event loop, whatever is in it', async () => {
  const { id } = await service.createServer()
  const most = 1_000_000
  const filled = (one: string) =>
    `{"files":[${Array(Math.floor(most / (one.length + 1)))
      .fill(one)
      .join()}]}`
  const bodies = {
    numbers: filled('1'),
    objects: filled('{}'),
    'escaped keys': filled('{"\\u0061":1}'),
    'empty names': filled('""'),
    'fields that are not known': `{${Array.from({ length: 60_000 }, (_, key) => `"k${key}":0`).join()}}`,
    arrays: `{"files":${'['.repeat(most / 2)}${']'.repeat(most / 2)}}`,
    'one name': `{"files":["${'a/'.repeat(most / 2)}"]}`,
    'a thousand deep names': `{"files":[${Array(1000)
      .fill(`"${'a/'.repeat(490)}"`)
      .join()}]}`,
  }
  using watch = watchTurns()
  await watch.ready
  for (const [what, body] of Object.entries(bodies)) {
    const before = (await watch.longTurns()).length
    const headers = { authorization: `Bearer ${service.adminToken}`, 'content-type': 'application/json' }
    const reply = await fetch(`${service.url}/v1/game/files/${id}`, { method: 'DELETE', headers, body })
    await reply.arrayBuffer()
    assert.ok(reply.status >= 200 && reply.status < 500, `${what} was answered with ${reply.status}`)
    assert.deepEqual((await watch.longTurns()).slice(before), [], what)
  }
})

/** Not as other tests do, which also check each answer against its schema: that takes long turns of its own. */
async function ask(operation: Operation, { body, ...wanted }: Wanted): Promise<Response> {
  const isJson = body !== undefined && typeof body !== 'string'
  const response = await fetch(service.url + addressOf(operation, wanted), {
    method: operation.method,
    headers: {
      authorization: `Bearer ${service.adminToken}`,
      ...(isJson ? { 'content-type': 'application/json' } : {}),
      ...(operation.rawBody ? { 'content-type': operation.rawBody.types[0] } : {}),
    },
    ...(body === undefined ? {} : { body: isJson ? JSON.stringify(body) : body }),
  })
  await response.arrayBuffer()
  return response
}
