// Joins and leaves out of a console on disk, as a supervisor writes it, by one service after the other.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { launchOf } from '../../../../test/support/games.ts'
import { until } from '../../../../test/support/until.ts'
import { PLAYER_EVENTS_PER_MINUTE } from '../../../contract/fixed-limits.ts'
import type { NewFact } from '../../journal/journal.ts'
import { openConsoleWriter } from '../console/console-writer.ts'
import { createJoinFollower } from './join-follower.ts'

const S = 'srv_castle'
const NOW = Date.parse('2026-11-15T00:00:10.000Z')
const MINUTE_MS = 60_000

function openScene() {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-joins-'))
  mkdirSync(join(folder, 'game'))
  const launch = launchOf({ joins: [']: {player} joined'], leaves: [']: {player} left'] })
  /** Every time that something was told. */
  const told: NewFact[] = []
  let now = NOW
  let isFailing = false
  const console = openConsoleWriter(join(folder, 'console'), () => now)
  const open = () =>
    createJoinFollower({
      consoleFolder: () => join(folder, 'console'),
      file: () => join(folder, 'game', 'players.json'),
      launch: () => launch,
      async addFacts(facts) {
        if (isFailing) throw new Error('the disk is full')
        told.push(...facts)
      },
      changed: () => {},
      now: () => now,
      onUnexpected: () => {},
    })
  const scene = {
    folder,
    told,
    follower: open(),
    write: (...lines: string[]) => console.write('stdout', lines.map(Buffer.from as (text: string) => Buffer)),
    note: (text: string) => console.write('gamekeeper', [Buffer.from(text)]),
    type: (text: string) => console.write('command', [Buffer.from(text)]),
    advance: (ms: number) => (now += ms),
    fail: (failing: boolean) => (isFailing = failing),
    /** As after a SIGKILL: what was only in memory is gone. */
    restart() {
      scene.follower.stop()
      scene.follower = open()
      scene.follower.wake(S)
    },
    async toldInAll(count: number) {
      scene.follower.wake(S)
      await until(async () => distinct(told).length >= count)
    },
    [Symbol.dispose]() {
      scene.follower.stop()
      console[Symbol.dispose]()
      rmSync(folder, { recursive: true })
    },
  }
  return scene
}

const distinct = (facts: readonly NewFact[]) => [...new Map(facts.map((fact) => [fact.id, fact])).values()]
const summary = (facts: readonly NewFact[]) =>
  distinct(facts).map(({ kind, properties: { player, line } }) => `${kind} ${player} ${line}`)

test('Each join and leave is told once, however often the service is killed in between', async () => {
  using scene = openScene()
  scene.note('Started.')
  scene.write('[x]: anna joined', 'nothing', '[x]: ben joined')
  scene.type('say ]: carl joined')
  await scene.toldInAll(2)
  scene.write('[x]: anna left')
  scene.restart()
  await scene.toldInAll(3)
  // The record is lost with the machine: everything is looked at again, and has the ids that it had.
  writeFileSync(join(scene.folder, 'game', 'players.json'), '{"li')
  scene.restart()
  scene.write('[x]: dora joined')
  await scene.toldInAll(4)
  assert.deepEqual(summary(scene.told), [
    'player.joined anna 2',
    'player.joined ben 4',
    'player.left anna 6',
    'player.joined dora 7',
  ])
  await until(async () => scene.follower.online(S)?.length === 2)
  assert.deepEqual(scene.follower.online(S), ['ben', 'dora'])
})

test('nobody plays on a game that has ended, and what could not be told is told later', async () => {
  using scene = openScene()
  scene.note('Started.')
  scene.write('[x]: anna joined')
  await scene.toldInAll(1)
  scene.note('Ended with exit code 1.')
  scene.note('Started.')
  scene.fail(true)
  scene.write('[x]: ben joined')
  scene.restart()
  scene.fail(false)
  scene.restart()
  await scene.toldInAll(2)
  assert.deepEqual(summary(scene.told), ['player.joined anna 2', 'player.joined ben 5'])
  await until(async () => scene.follower.online(S)?.length === 1)
  assert.deepEqual(scene.follower.online(S), ['ben'])
})

test('A game that prints joins without end has a hundred of them recorded in a minute, and the number of the others', async () => {
  using scene = openScene()
  const lines = 20_000
  for (let n = 0; n < lines; n += 1000)
    scene.write(...Array.from({ length: 1000 }, (_, index) => `[x]: p${n + index} joined`))
  await scene.toldInAll(PLAYER_EVENTS_PER_MINUTE)
  scene.restart()
  scene.advance(MINUTE_MS)
  scene.write('[x]: anna left')
  await scene.toldInAll(PLAYER_EVENTS_PER_MINUTE + 2)
  const facts = distinct(scene.told)
  assert.equal(facts.length, PLAYER_EVENTS_PER_MINUTE + 2)
  const [omitted] = facts.filter(({ kind }) => kind === 'player.changes_omitted')
  const expected = { joined: lines - PLAYER_EVENTS_PER_MINUTE, left: 0, fromLine: PLAYER_EVENTS_PER_MINUTE + 1 }
  assert.deepEqual(omitted?.properties, { ...expected, at: '2026-11-15T00:00:10.000Z' })
  assert.equal(scene.follower.online(S), null, 'more than are remembered')
})
