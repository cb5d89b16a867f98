// The game behind an init of the engine's: with processes of this machine, since not every engine has one.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { launchOf } from '../../../../test/support/games.ts'
import { NO_LIMITS } from '../games.testing.ts'
import { leaderBehind } from './container-leader.ts'
import { containerOptions } from './container-options.ts'

const container = { image: 'game', directory: '/data', capabilities: [], installer: null }

test('a game has an init before it where the engine has one, and only there', () => {
  const request = {
    ...{ serverId: 'srv_castle', runId: 'run_1', launch: launchOf({ container }), container, limits: NO_LIMITS },
    ...{ user: { uid: 1, gid: 1 }, isRoot: true, filesFolder: '/files', pipesFolder: '/pipes' },
    ownLimits: { openFiles: 1024, processes: 1024 },
  }
  const hasInit = (InitBinary: string) => containerOptions({ ...request, info: { InitBinary } }).HostConfig?.Init
  assert.deepEqual([hasInit('docker-init'), hasInit('')], [true, undefined])
})

for (const [how, code] of [
  ['a child with a group of its own leads the game', 'setpgrp(0, 0)'],
  ['an init that gives it none is signalled itself', '1'],
] as const)
  test(how, async () => {
    const script = `$| = 1; my $pid = fork(); if (!$pid) { ${code}; print "up\\n"; sleep 60; exit } wait`
    const init = spawn('perl', ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'], detached: true })
    await once(init.stdout, 'data')
    const leader = leaderBehind(init.pid ?? 0)
    assert.equal(leader === init.pid, code === '1')
    process.kill(leader, 'SIGKILL')
    process.kill(-(init.pid ?? 0), 'SIGKILL')
    await once(init, 'exit')
  })
