// docs/limits.md says what the code says, and what it says of turns is what the watchdog allows.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { LIMITS_FILE, limitsDocument } from '../../scripts/limits.ts'
import { OPERATIONS } from '../../src/contract/index.ts'
import type { Operation } from '../../src/contract/operation.ts'
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
  const tooMuch = OPERATIONS.filter(({ bound }) => bound.turnMs > LONGEST_TURN_MS || bound.heldBytes > HELD_MAX)
  assert.deepEqual(tooMuch, [])
})

let service: TestService
before(async () => {
  service = await startTestService({ env: OPERATIONS_ENV })
})
after(() => service.stop())

test('every operation stays within the turns that it states', async () => {
  const things = createThings(service)
  const exceeding: object[] = []
  using watch = watchTurns()
  await watch.ready
  for (const operation of OPERATIONS) {
    if ((UNASKABLE as Record<string, unknown>)[operation.id] !== undefined) continue
    const wanted = await wantedFor(operation, things)
    const before = (await watch.longTurns()).length
    const { status } = await ask(operation, wanted)
    assert.ok(status < 500, `${operation.id} answered ${status}`)
    const long = (await watch.longTurns()).slice(before).filter(({ cpuMs }) => cpuMs > operation.bound.turnMs)
    if (long.length > 0) exceeding.push({ id: operation.id, long })
  }
  assert.deepEqual(exceeding, [])
})

const ask = (operation: Operation, { body, ...wanted }: Wanted) =>
  service.call(operation.method, addressOf(operation, wanted), body === undefined ? {} : { body })
