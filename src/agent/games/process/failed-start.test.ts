// What a start that came to nothing leaves behind.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as immediate } from 'node:timers/promises'
import { childrenNow } from '../../../../test/support/children.ts'
import { launchOf, putGame } from '../../../../test/support/games.ts'
import { until } from '../../../../test/support/until.ts'
import { openSandbox } from '../../files/sandbox/sandbox.ts'
import type { ServerFiles } from '../../files/server-files.ts'
import { NO_LIMITS } from '../games.testing.ts'
import { childWithoutPipes, failingSpawn } from '../supervisor/failing-spawn.testing.ts'
import { groupFoldersOf, makeGroups, removeGroups } from './cgroups.ts'
import { createProcessRuntime } from './process-runtime.ts'

const S = 'srv_castle'
/** Refused once everything else has been made ready. */
const REFUSED = { LD_PRELOAD: 'own.so' }
const EVENTS = { ready() {}, lines() {}, ended() {} }

function hasGroups(): boolean {
  const { folders } = makeGroups(`run_tried_${process.pid}`, NO_LIMITS)
  void removeGroups(folders)
  return folders.length > 0
}

const groupsOf = (pid: number) => groupFoldersOf(pid).filter((folder) => folder.includes('gamekeeper-run_'))

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
      ownershipOf: () => ({ file: 'true', args: [] }),
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
  const [launch, ofInstallation] = [launchOf({ environment: REFUSED }), launchOf({ environment: REFUSED })]
  const start = (of: typeof launch, runId: string) =>
    assert.rejects(opened.runtime.start({ serverId: S, runId, launch: of, limits: NO_LIMITS }, EVENTS), /LD_PRELOAD/)
  await opened.runtime.check({ serverId: S, launch, limits: NO_LIMITS })
  await start(launch, `run_checked_${process.pid}`)
  assert.equal(opened.given(), 0)
  await opened.runtime.check({ serverId: S, launch, limits: NO_LIMITS })
  await start(ofInstallation, `run_install_${process.pid}`)
  assert.equal(opened.given(), 1)
})

test('a start that is not made after its check leaves no supervisor and no control group behind', async (context) => {
  using opened = openRuntime()
  const launch = launchOf({ environment: REFUSED })
  const check = async () => {
    const before = childrenNow()
    await opened.runtime.check({ serverId: S, launch, limits: NO_LIMITS })
    const [supervisor] = childrenNow().filter((pid) => !before.includes(pid)) as [number]
    if (!hasGroups()) return { supervisor, folders: [] }
    await until(async () => groupsOf(supervisor).length > 0)
    return { supervisor, folders: groupsOf(supervisor) }
  }
  const untilGone = async ({ supervisor, folders }: { supervisor: number; folders: string[] }) => {
    await until(async () => !childrenNow().includes(supervisor))
    assert.deepEqual(folders.filter(existsSync), [])
  }
  if (!hasGroups()) context.diagnostic('there are no control groups here')
  const first = await check()
  // Checked again, which is another start.
  const second = await check()
  await untilGone(first)
  const run = { serverId: S, runId: `run_refused_${process.pid}`, launch, limits: NO_LIMITS }
  await assert.rejects(opened.runtime.start(run, EVENTS), /LD_PRELOAD/)
  await untilGone(second)
})

test('a start whose check is refused leaves no supervisor behind', { timeout: 60_000 }, async (context) => {
  // One that is forgotten goes by a timer.
  context.mock.timers.enable({ apis: ['setTimeout'] })
  using opened = openRuntime()
  const before = childrenNow()
  const launch = launchOf({ argv: ['./not-there'] })
  await assert.rejects(opened.runtime.check({ serverId: S, launch, limits: NO_LIMITS }), /not-there is missing/)
  while (childrenNow().some((pid) => !before.includes(pid))) await immediate()
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
