// Containers of rehearsals whose engine is away.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { launchOf, putGame } from '../../../test/support/games.ts'
import { needs } from '../../../test/support/needs.ts'
import { until } from '../../../test/support/until.ts'
import { createManualTimers, NO_LIMITS } from '../games/games.testing.ts'
import { DEFAULT_GAMES_OPTIONS } from '../games/games-deps.ts'
import { bootId } from '../games/process-identity.ts'
import { layout as layoutOf } from '../layout.ts'
import { createLeftContainers } from './left-containers.ts'
import { createRehearsals } from './rehearsals.ts'

const S = 'srv_castle'

test('a container whose engine is away is removed once that answers, also by the next service', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-left-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const timers = createManualTimers()
  const errors: unknown[] = []
  const asked: string[] = []
  let isAway = true
  const engine = {
    async remove(name: string) {
      asked.push(name)
      if (isAway) throw new Error('away')
    },
  }
  const open = () =>
    createLeftContainers({
      ...{ file: join(folder, 'left.json'), engine, timers },
      onUnexpected: (error) => errors.push(error),
    })
  const first = open()
  first.add('run_1')
  await first.remove()
  timers.advance(60_000)
  await until(async () => asked.length === 2)
  assert.equal(errors.length, 1, 'said once')
  isAway = false
  await open().remove()
  await open().remove()
  assert.deepEqual(asked, ['gamekeeper-run_1', 'gamekeeper-run_1', 'gamekeeper-run_1'])
})

test(
  'a container that an earlier service left, also before a boot, keeps nothing from being rehearsed',
  needs('bubblewrap'),
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-left-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const layout = layoutOf(folder)
    mkdirSync(layout.server(S).files, { recursive: true })
    const game = join(layout.rehearsals, 'servers', S, 'game')
    function leave(runId: string, boot: string): void {
      mkdirSync(game, { recursive: true })
      writeFileSync(join(layout.rehearsals, 'run.json'), JSON.stringify({ serverId: S, runId }))
      const left = { bootId: boot, ready: [], stopsByItself: [] }
      writeFileSync(join(game, `container-${runId}.json`), JSON.stringify(left))
    }
    const errors: unknown[] = []
    const rehearsals = createRehearsals({
      layout,
      backups: { restoreInto: async (server) => putGame(server.folders.files, 'plain') },
      options: { ...DEFAULT_GAMES_OPTIONS, containerSocket: join(folder, 'no-engine') },
      now: Date.now,
      onUnexpected: (error) => errors.push(error),
    })
    const work = { kind: 'backups.rehearse' as const, backupId: 'bkp_1', limits: NO_LIMITS, timeoutSeconds: 20 }
    const context = { taskId: 'job_1', serverId: S, signal: new AbortController().signal, report() {} }
    leave('run_before', 'another')
    await rehearsals.recover()
    leave('run_left', bootId())
    const report = await rehearsals.handlers['backups.rehearse']({ ...work, launch: launchOf() }, context)
    assert.deepEqual([report.outcome, errors.length], ['passed', 1])
    assert.deepEqual(JSON.parse(readFileSync(layout.leftContainers, 'utf8')), { runIds: ['run_before', 'run_left'] })
  },
)
