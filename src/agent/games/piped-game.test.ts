import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { cannotRunOut, whileFew } from '../files/few-descriptors.testing.ts'
import { makeTree, openDescriptors, untilDescriptors } from '../files/trees.testing.ts'
import { holdPipes, type PipedGame } from './supervisor/piped-game.ts'

/** The input, and of each output both ends. */
const PIPES = 5

test('of the pipes of a game all are open, or none where descriptors have run out', {
  skip: cannotRunOut,
}, async (t) => {
  const folder = makeTree(t)
  for (const name of ['in', 'out', 'err']) execFileSync('mkfifo', [join(folder, name)])
  const before = openDescriptors()
  let pipes: PipedGame | undefined
  for (const free of [0, 1, 2, 3, 4, PIPES]) {
    assert.equal(pipes, undefined)
    const { error } = await whileFew('at once', free, () => {
      pipes = holdPipes(folder, 1000, { output() {}, ended() {} })
    })
    if (free === PIPES) continue
    assert.equal((error as NodeJS.ErrnoException).code, 'EMFILE')
    await untilDescriptors(before)
  }
  assert.equal(openDescriptors().length, before.length + PIPES)
  await pipes?.end({ code: 0, signal: null, isOutOfMemory: false, hasBegun: true })
  await untilDescriptors(before)
})
