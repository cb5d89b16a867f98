// An engine that goes away in the middle of a start.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { launchOf } from '../../../../test/support/games.ts'
import { until } from '../../../../test/support/until.ts'
import { fail, isFailure } from '../../../contract/errors.ts'
import { readRecord } from '../../../kit/files/durable-record.ts'
import type { ServerFiles } from '../../files/server-files.ts'
import { NO_LIMITS } from '../games.testing.ts'
import { isAlive, signalGroup } from '../process-identity.ts'
import type { RunEnd } from '../runtime.ts'
import { type RunRecord, runFile } from '../supervisor/protocol.ts'
import { createContainerRuntime } from './container-runtime.ts'
import type { ContainerState, Engine } from './engine.ts'

const away = () => fail('isolation_missing', 'There is no container engine: it went away.')
const CONTAINER = { image: 'game', directory: '/data', capabilities: [], installer: null }

/** One whose answers the test decides. */
function open(answers: Partial<Engine>) {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-away-'))
  for (const name of ['game', 'console', 'files']) mkdirSync(join(folder, name))
  const engine: Engine = {
    info: async () => ({}),
    hasImage: async () => true,
    pull: async () => {},
    create: async () => {},
    start: async () => {},
    inspect: async () => undefined,
    wait: (_, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', reject, { once: true })),
    signal: async () => {},
    remove: async () => {},
    list: async () => [],
    ...answers,
  }
  const runtime = createContainerRuntime({
    engine,
    server: () => ({ folders: { files: join(folder, 'files') } }) as unknown as ServerFiles,
    gameFolder: () => join(folder, 'game'),
    consoleFolder: () => join(folder, 'console'),
    users: { assign: async () => null, ownershipOf: () => null, giveFiles: async () => {} },
    onUnexpected() {},
  })
  const ends: RunEnd[] = []
  const request = {
    serverId: 'srv_castle',
    runId: 'run_1',
    launch: launchOf({ container: CONTAINER }),
    limits: NO_LIMITS,
  }
  const start = (runId = request.runId) => {
    request.runId = runId
    return runtime.start(request, { ready() {}, lines() {}, ended: (end) => void ends.push(end) })
  }
  const runRecord = () => readRecord<RunRecord>(join(folder, 'game', runFile(request.runId)))
  return {
    ...{ start, ends, folder: join(folder, 'game'), runRecord },
    [Symbol.dispose]() {
      const record = runRecord()
      if (record) signalGroup(record.supervisor, 'SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

test('a container that may have been started counts as running until the engine says that nothing is left', async () => {
  let isAway = true
  let removals = 0
  using opened = open({
    start: async () => {
      throw away()
    },
    async remove() {
      removals++
      if (isAway) throw away()
    },
  })
  await opened.start()
  await until(async () => removals > 2)
  assert.deepEqual(opened.ends, [])
  isAway = false
  await until(async () => opened.ends.length === 1)
  assert.deepEqual(
    opened.ends.map(({ signal }) => signal),
    ['SIGKILL'],
  )
})

test('a game that has started goes on when the engine goes away right after it', async () => {
  let isAway = true
  let isRemoved = false
  const state: ContainerState = {
    id: 'x',
    pid: 0,
    hasInit: false,
    status: 'ended',
    exitCode: 0,
    isOutOfMemory: false,
    endedAt: 1,
  }
  using opened = open({
    async inspect() {
      if (isAway) throw away()
      return state
    },
    async wait() {
      if (isAway) throw away()
    },
    async remove() {
      isRemoved = true
    },
  })
  const { run } = await opened.start()
  assert.deepEqual([isRemoved, opened.ends], [false, []])
  isAway = false
  await until(async () => opened.ends.length === 1)
  assert.deepEqual(
    opened.ends.map(({ code, at }) => [code, at]),
    [[0, 1]],
  )
  run.detach()
})

test('a stop while the image is pulled ends the pull, and a game that has been started is told', async () => {
  const pulled = Promise.withResolvers<void>()
  let hasStarted = false
  using cut = open({
    hasImage: async () => false,
    pull: (_image, _told, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('cut off')))),
    start: async () => {
      hasStarted = true
    },
  })
  const { run: waiting } = await cut.start()
  assert.equal(waiting.giveUpWaiting?.(), true)
  await until(async () => cut.ends.length === 1)
  assert.deepEqual([hasStarted, cut.ends[0]?.hasBegun], [false, false])

  using opened = open({
    hasImage: async () => false,
    pull: () => pulled.promise,
    signal: async () => {
      throw new Error('no such container')
    },
  })
  const { run } = await opened.start()
  assert.equal(await run.input('stop'), 'gone')
  await assert.rejects(run.signal('SIGTERM'), 'it is not taken')
  pulled.resolve()
  await until(async () => (await run.input('stop')) === null)
  assert.equal(run.giveUpWaiting?.(), false, 'it may have something to save')
  run.detach()
})

test('a game has an init before it where the engine has one, and is started without where it does not', async () => {
  const made: unknown[] = []
  using opened = open({
    async create(_, { HostConfig }) {
      made.push(HostConfig?.Init)
      if (HostConfig?.Init) throw new Error('container-init binary not found on the host: stat catatonit')
    },
  })
  for (let time = 0; time < 2; time++) {
    const { run } = await opened.start()
    run.detach()
  }
  assert.deepEqual(made, [true, undefined, undefined], 'it is asked once')
})

test('what an engine says of a program that is called as an init takes the init from no other game', async () => {
  const made: unknown[] = []
  let isMissing = true
  using opened = open({
    async create(_, { HostConfig }) {
      made.push(HostConfig?.Init)
      if (isMissing) throw new Error('exec: "docker-init": executable file not found')
    },
  })
  await assert.rejects(opened.start(), (error) => isFailure(error, 'not_startable'))
  isMissing = false
  const { run } = await opened.start('run_2')
  run.detach()
  assert.deepEqual(made, [true, undefined, true])
})

test('an engine that goes away before anything is made leaves no supervisor behind', async () => {
  using opened = open({
    hasImage: async () => {
      throw away()
    },
  })
  await assert.rejects(opened.start(), (error) => isFailure(error, 'isolation_missing'))
  assert.equal(opened.runRecord(), undefined)
})

test('a command to a game whose supervisor cannot be replaced is not waited for', { timeout: 120_000 }, async () => {
  using opened = open({})
  const { run } = await opened.start()
  const file = join(opened.folder, runFile('run_1'))
  const { supervisor } = opened.runRecord() as RunRecord
  // As if the disk took nothing any more.
  mkdirSync(`${file}.new`)
  process.kill(supervisor.pid, 'SIGKILL')
  await until(async () => !isAlive(supervisor))
  await until(async () => (await run.input('stop')) === 'full')
  run.detach()
})
