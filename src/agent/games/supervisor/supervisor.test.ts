// A supervisor whose disk takes nothing: what it holds and what it knows is not lost.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../../../../test/support/until.ts'
import { readRecord } from '../../../kit/files/durable-record.ts'
import { isAlive } from '../process-identity.ts'
import { exitFile, type RunEnd, type RunRecord, runFile, uptimeMs } from './protocol.ts'
import { reachSupervisor, spawnSupervisor } from './supervisor-client.ts'

const runId = 'run_1'
const NOTHING_HEARD = { changed() {}, closed() {} }
/** Longer than one that has written everything stays. */
const STAYS_MS = 2500

test('a disk that takes nothing ends neither a supervisor nor what it knows of its game', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-supervisor-'))
  using _folder = { [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
  const [run, exit] = [runFile(runId), exitFile(runId)].map((name) => join(folder, name)) as [string, string]
  // Nothing can be written where these are.
  for (const file of [run, exit]) mkdirSync(`${file}.new`)
  const answer = await spawnSupervisor(folder).begin(folder, {
    ...{ runId, ready: [], stopsByItself: [], environment: '', user: null, isBubblewrap: false, cgroups: [] },
    consoleFolder: join(folder, 'console'),
    command: { file: '/bin/sh', args: ['-c', 'read -r line; exit 3'], cwd: '/' },
  })
  assert.deepEqual(answer, { started: true })
  const record = () => readRecord<RunRecord>(run) as RunRecord
  const { supervisor } = record()
  const line = await reachSupervisor(folder, record(), NOTHING_HEARD, {
    signal: new AbortController().signal,
    isOver: () => false,
  })
  assert.equal(record().game, null)
  rmdirSync(`${run}.new`)
  const game = await until(async () => record().game)
  assert.ok(isAlive(game))

  // As one that lay in the socket while nobody read: it counts as not taken, and comes again.
  assert.equal(await line?.ask({ op: 'input', text: 'late', notAfter: uptimeMs() - 1 }), 'full')
  assert.equal(line?.status().end, null)
  assert.equal(await line?.ask({ op: 'input', text: 'go' }), null)
  await until(async () => line?.status().end)
  await delay(STAYS_MS)
  assert.ok(isAlive(supervisor), 'it still has to tell how the game ended')
  const again = await reachSupervisor(folder, record(), NOTHING_HEARD, {
    signal: AbortSignal.timeout(60_000),
    isOver: () => false,
  })
  assert.equal(again?.status().end?.code, 3, 'also to a service that comes back meanwhile')
  rmdirSync(`${exit}.new`)
  assert.equal((await until(async () => readRecord<RunEnd>(exit))).code, 3)
  await until(async () => !isAlive(supervisor))
})

test('what could not be started is told, also where the disk takes nothing at first', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-supervisor-'))
  using _folder = { [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
  const exit = join(folder, exitFile(runId))
  mkdirSync(`${exit}.new`)
  const answer = await spawnSupervisor(folder).begin(folder, {
    ...{ runId, ready: [], stopsByItself: [], environment: '', user: null, isBubblewrap: false, cgroups: [] },
    consoleFolder: join(folder, 'console'),
    command: { file: '/nonexistent', args: [], cwd: '/' },
  })
  assert.equal(!answer.started && answer.code, 'ENOENT')
  const record = readRecord<RunRecord>(join(folder, runFile(runId))) as RunRecord
  const line = await reachSupervisor(folder, record, NOTHING_HEARD, {
    signal: AbortSignal.timeout(60_000),
    isOver: () => false,
  })
  assert.equal(line?.status().end?.hasBegun, false)
  rmdirSync(`${exit}.new`)
  assert.equal((await until(async () => readRecord<RunEnd>(exit))).hasBegun, false)
})
