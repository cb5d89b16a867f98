// What is shown of a game, and what of that is on disk.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createManualTimers } from '../games.testing.ts'
import { readGame } from './game-record.ts'
import { createGameState } from './game-state.ts'

function open() {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-state-'))
  const file = join(folder, 'game.json')
  const timers = createManualTimers()
  let changes = 0
  const game = createGameState({ file, timers, changed: () => changes++, onUnexpected: assert.fail })
  return {
    ...{ game, timers, changes: () => changes, onDisk: () => readGame(file).power.state },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true }),
  }
}

test('what a later service finds out by itself is shown before the disk has it', () => {
  using opened = open()
  opened.game.saveDurably(opened.game.inState('starting'))
  opened.game.enterUnsaved('running', { runningSince: 1 })
  assert.equal(opened.game.read().power.state, 'running')
  assert.equal(opened.changes(), 2)
  assert.equal(opened.onDisk(), 'starting')
  opened.timers.advance(1000)
  assert.equal(opened.onDisk(), 'running')
  assert.equal(opened.changes(), 2)
})

test('it is on disk with the next change, and when the service stops', () => {
  for (const save of ['save', 'flush'] as const) {
    using opened = open()
    opened.game.saveDurably(opened.game.inState('starting'))
    opened.game.enterUnsaved('running', {})
    if (save === 'save') opened.game.save({ restarts: 0 })
    else opened.game.flush()
    assert.equal(opened.onDisk(), 'running')
    opened.game.enter('stopped')
    opened.timers.advance(1000)
    assert.equal(opened.onDisk(), 'stopped')
  }
})
