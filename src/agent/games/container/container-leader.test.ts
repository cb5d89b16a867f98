// The game behind an init of the engine's: with processes of this machine, since not every engine has one.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { firstLook, noDescriptor } from '../supervisor/first-look.testing.ts'
import { leaderBehind } from './container-leader.ts'

test('an init that has not started the game yet leads nothing', async () => {
  // Alone, and with a child that is still the init itself.
  for (const script of ['print "up\\n"; sleep 60', 'fork(); print "up\\n"; sleep 60']) {
    const init = spawn('perl', ['-e', `$| = 1; ${script}`], { stdio: ['ignore', 'pipe', 'inherit'], detached: true })
    await once(init.stdout, 'data')
    assert.equal(leaderBehind(init.pid ?? 0), 'none yet')
    process.kill(-(init.pid ?? 0), 'SIGKILL')
    await once(init, 'exit')
  }
})

for (const [how, code] of [
  ['a child with a group of its own leads the game', 'setpgrp(0, 0)'],
  ['an init that gives it none is signalled itself', '1'],
] as const)
  test(how, async () => {
    const script = `my $pid = fork(); if (!$pid) { ${code}; exec 'sh', '-c', 'echo up; exec sleep 60' } wait`
    const init = spawn('perl', ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'], detached: true })
    await once(init.stdout, 'data')
    const leader = leaderBehind(init.pid ?? 0)
    assert.ok(leader !== 'none yet')
    assert.equal(leader === init.pid, code === '1')
    process.kill(leader, 'SIGKILL')
    process.kill(-(init.pid ?? 0), 'SIGKILL')
    await once(init, 'exit')
  })

test('an init does not pass for the leader where no descriptor is left to look at its child', async (t) => {
  const script = "my $pid = fork(); if (!$pid) { setpgrp(0, 0); exec 'sh', '-c', 'echo $$; exec sleep 60' } wait"
  const init = spawn('perl', ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'], detached: true })
  const [said] = await once(init.stdout, 'data')
  const game = Number(String(said))
  t.after(() => {
    process.kill(game, 'SIGKILL')
    init.kill('SIGKILL')
  })
  using _look = firstLook(game, noDescriptor)
  assert.throws(() => leaderBehind(init.pid ?? 0), { code: 'EMFILE' })
  assert.equal(leaderBehind(init.pid ?? 0), game)
})
