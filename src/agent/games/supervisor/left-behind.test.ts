// What a game leaves behind is ended by what the kernel knows of it, and nobody else is.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { identify, isAlive, type ProcessIdentity } from '../process-identity.ts'
import { firstLook, noDescriptor } from './first-look.testing.ts'
import { killGroupOf, killLeader, untilGone } from './left-behind.ts'

/** Leads a session and a group of its own, as a game does. */
function spawnLeader(line: string) {
  const child = spawn('/bin/sh', ['-c', line], { detached: true, stdio: ['pipe', 'pipe', 'ignore'] })
  const leader = identify(child.pid as number) as ProcessIdentity
  return { child, leader, [Symbol.dispose]: () => void child.kill('SIGKILL') }
}

test('those whom a game leaves behind in its group are ended', async () => {
  using game = spawnLeader('sleep 60 >/dev/null & echo $!; read -r line')
  const [said] = await once(game.child.stdout, 'data')
  const left = identify(Number(String(said)))
  game.child.stdin.end()
  await once(game.child, 'exit')
  assert.ok(left && isAlive(left))
  await untilGone([killGroupOf(game.leader)])
  assert.ok(!isAlive(left))
})

test('a group that has the number of a game that has ended is not ended for it', async () => {
  using other = spawnLeader('echo up; read -r line; echo "$line"')
  await once(other.child.stdout, 'data')
  const ended = { ...other.leader, startTime: '1' }
  await untilGone([killGroupOf(ended)])
  using look = firstLook(ended.pid, noDescriptor)
  await untilGone([killGroupOf(ended)])
  assert.ok(look.count() > 1, 'who has the number is looked up again')
  other.child.stdin.write('still there\n')
  const [said] = await once(other.child.stdout, 'data')
  assert.equal(String(said), 'still there\n')
})

test('a leader that cannot be looked at for want of a descriptor does not pass for gone', async () => {
  using game = spawnLeader('echo up; read -r line')
  await once(game.child.stdout, 'data')
  using _look = firstLook(game.leader.pid, noDescriptor)
  await untilGone([killLeader(game.leader)])
  assert.ok(!isAlive(game.leader))
})

test('nobody is told that they are gone while one of them still is there', async () => {
  const left = [
    [2, 1],
    [0, 1],
    [1, 0],
    [0, 0],
  ]
  let looks = 0
  const kill = (column: number) => () => left[column === 0 ? looks : looks++]?.[column] ?? 0
  await untilGone([kill(0), kill(1)])
  assert.equal(looks, left.length)
})
