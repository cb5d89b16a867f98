// What has been started is known, or ended: nothing plays on that is shown as stopped.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { launchOf, putGame } from '../../../../test/support/games.ts'
import { needs } from '../../../../test/support/needs.ts'
import { until } from '../../../../test/support/until.ts'
import type { ServerFiles } from '../../files/server-files.ts'
import { NO_LIMITS, openGames } from '../games.testing.ts'
import { isAlive } from '../process-identity.ts'
import type { RunEnd } from '../runtime.ts'
import type { RunRecord } from '../supervisor/protocol.ts'
import { createProcessRuntime } from './process-runtime.ts'

const S = 'srv_castle'

const runFileIn = (folder: string) =>
  join(folder, readdirSync(folder).find((name) => /^run-run_.*\.json$/.test(name)) ?? '')
const readRun = (file: string) => JSON.parse(readFileSync(file, 'utf8')) as RunRecord

suite('a run that is not followed', needs('bubblewrap'), () => {
  test('a game that was started and cannot be followed at once is handed over, and followed as soon as it can be', async () => {
    const top = mkdtempSync(join(tmpdir(), 'gamekeeper-forgotten-'))
    const folder = join(top, 'game')
    for (const name of ['game', 'console', 'files']) mkdirSync(join(top, name))
    putGame(join(top, 'files'), 'plain')
    let kept: { file: string; text: string } | undefined
    const errors: unknown[] = []
    const runtime = createProcessRuntime({
      server: () => ({ folders: { files: join(top, 'files') } }) as unknown as ServerFiles,
      gameFolder() {
        // As soon as there is one: as if the disk did not give it back.
        const file = runFileIn(folder)
        if (!kept && file !== join(folder, '')) {
          kept = { file, text: readFileSync(file, 'utf8') }
          writeFileSync(file, '{')
        }
        return folder
      },
      consoleFolder: () => join(top, 'console'),
      users: { assign: async () => null, ownershipOf: () => null, giveFiles: async () => {} },
      hidden: [],
      allowUnisolated: false,
      onUnexpected: (error) => void errors.push(error),
    })
    const ends: RunEnd[] = []
    const request = { serverId: S, runId: 'run_1', launch: launchOf(), limits: NO_LIMITS }
    const isReady = Promise.withResolvers<void>()
    const events = { ready: isReady.resolve, lines() {}, ended: (end: RunEnd) => void ends.push(end) }
    const { run } = await runtime.start(request, events)
    assert.ok(kept && errors.length > 0)
    const { game } = JSON.parse(kept.text) as RunRecord
    assert.ok(game && isAlive(game))
    writeFileSync(kept.file, kept.text)
    await isReady.promise
    await run.kill()
    await until(async () => ends.length === 1)
    assert.equal(isAlive(game), false)
    rmSync(top, { recursive: true, force: true })
  })

  test('A start ends what an earlier run has left alive', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    await harness.power(S, 'start')
    await harness.reach(S, 'running')
    const folder = join(harness.dataDir, 'servers', S, 'game')
    const { game, supervisor } = readRun(runFileIn(folder))
    assert.ok(game)
    harness.edit(S, (record) => ({
      ...{ ...record, runId: null, isWanted: false, asked: null },
      power: { ...record.power, state: 'stopped' },
    }))
    await harness.restart()
    await harness.power(S, 'start')
    assert.deepEqual([isAlive(game), isAlive(supervisor)], [false, false])
    await harness.reach(S, 'running')
    const lines = await harness.linesOf(S)
    assert.deepEqual(
      lines.filter((line) => /Started|Ended/.test(line)),
      ['Started.', 'Ended by SIGTERM.', 'Started.'],
    )
  })
})
