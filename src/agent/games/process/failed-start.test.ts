// What a start that came to nothing leaves behind.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { launchOf, putGame } from '../../../../test/support/games.ts'
import { until } from '../../../../test/support/until.ts'
import { openSandbox } from '../../files/sandbox/sandbox.ts'
import type { ServerFiles } from '../../files/server-files.ts'
import { NO_LIMITS } from '../games.testing.ts'
import { childWithoutPipes, failingSpawn } from '../supervisor/failing-spawn.testing.ts'
import { makeGroups, removeGroups } from './cgroups.ts'
import { createProcessRuntime } from './process-runtime.ts'

const S = 'srv_castle'
const EVENTS = { ready() {}, lines() {}, ended() {} }

function openRuntime() {
  const top = mkdtempSync(join(tmpdir(), 'gamekeeper-failed-'))
  for (const name of ['game', 'console', 'files']) mkdirSync(join(top, name))
  putGame(join(top, 'files'), 'plain')
  const server = { folders: { files: join(top, 'files') }, files: openSandbox(join(top, 'files')) }
  let given = 0
  const runtime = createProcessRuntime({
    server: () => server as unknown as ServerFiles,
    gameFolder: () => join(top, 'game'),
    consoleFolder: () => join(top, 'console'),
    users: {
      assign: async () => ({ uid: 70_000, gid: 70_000 }),
      ownsFiles: async () => true,
      async giveFiles() {
        given += 1
      },
    },
    hidden: [],
    findBubblewrap: async () => '/usr/bin/bwrap',
    allowUnisolated: false,
    onUnexpected: (error) => assert.fail(error as Error),
  })
  return { runtime, given: () => given, [Symbol.dispose]: () => rmSync(top, { recursive: true }) }
}

test('what a check found of the files counts for its own start, and for no installation after it', async () => {
  using opened = openRuntime()
  using _spawning = failingSpawn(0, childWithoutPipes)
  const [launch, ofInstallation] = [launchOf(), launchOf()]
  const start = (of: typeof launch, runId: string) =>
    assert.rejects(opened.runtime.start({ serverId: S, runId, launch: of, limits: NO_LIMITS }, EVENTS), /EMFILE/)
  await opened.runtime.check({ serverId: S, launch, limits: NO_LIMITS })
  await start(launch, `run_checked_${process.pid}`)
  assert.equal(opened.given(), 0)
  await opened.runtime.check({ serverId: S, launch, limits: NO_LIMITS })
  await start(ofInstallation, `run_install_${process.pid}`)
  assert.equal(opened.given(), 1)
})

test('the control groups of a supervisor that ended before it made its record are removed', async (context) => {
  const runId = `run_failed_${process.pid}`
  const { folders } = makeGroups(runId, NO_LIMITS)
  await removeGroups(folders)
  if (folders.length === 0) return context.skip('there are none here')
  using opened = openRuntime()
  using _spawning = failingSpawn(0, childWithoutPipes)
  const start = opened.runtime.start({ serverId: S, runId, launch: launchOf(), limits: NO_LIMITS }, EVENTS)
  await assert.rejects(start, /EMFILE/)
  await until(async () => !folders.some(({ folder }) => existsSync(folder)))
})
