// An engine that goes away in the middle of a start.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { launchOf } from '../../../../test/support/games.ts'
import { until } from '../../../../test/support/until.ts'
import { fail } from '../../../contract/errors.ts'
import type { ServerFiles } from '../../files/server-files.ts'
import { NO_LIMITS } from '../games.testing.ts'
import type { RunEnd } from '../runtime.ts'
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
    users: { assign: async () => null, giveFiles: async () => {} },
    onUnexpected() {},
  })
  const ends: RunEnd[] = []
  const request = {
    serverId: 'srv_castle',
    runId: 'run_1',
    launch: launchOf({ container: CONTAINER }),
    limits: NO_LIMITS,
  }
  const start = () => runtime.start(request, { ready() {}, lines() {}, ended: (end) => void ends.push(end) })
  return { start, ends, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
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
