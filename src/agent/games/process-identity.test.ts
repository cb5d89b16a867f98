import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { cannotRunOut, whileFew } from '../files/few-descriptors.testing.ts'
import { identify, isAlive, isAliveOrThrow, mayBeAlive, signalGroup } from './process-identity.ts'

test('a process that runs does not pass for one that has ended where descriptors have run out', {
  skip: cannotRunOut,
}, async (t) => {
  const child = spawn('sleep', ['1000'], { detached: true })
  t.after(() => void child.kill('SIGKILL'))
  await once(child, 'spawn')
  const found = identify(child.pid as number)
  assert.ok(found)
  const { error } = await whileFew('at once', 0, () => {
    assert.equal(mayBeAlive(found), true)
    assert.equal(isAlive(found), false, 'it is not sure')
    assert.throws(() => isAliveOrThrow(found), { code: 'EMFILE' })
    assert.equal(signalGroup(found, 'SIGKILL'), false, 'nobody is killed unseen')
  })
  assert.ifError(error)
  assert.equal(signalGroup(found, 'SIGKILL'), true)
  await once(child, 'exit')
  const ended = await whileFew('at once', 0, () => assert.equal(mayBeAlive(found), false))
  assert.ifError(ended.error)
})
