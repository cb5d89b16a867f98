// Rehearsals that say nothing about the backup: the job fails then, and the backup is not blamed.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { launchOf, putGame, type TestGame } from '../../../test/support/games.ts'
import { needs } from '../../../test/support/needs.ts'
import { isFailure } from '../../contract/errors.ts'
import { NO_LIMITS } from '../games/games.testing.ts'
import { DEFAULT_GAMES_OPTIONS } from '../games/games-deps.ts'
import { layout as layoutOf } from '../layout.ts'
import { createRehearsals } from './rehearsals.ts'

const S = 'srv_castle'
const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-rehearsals-'))
after(() => rmSync(folder, { recursive: true }))

function rehearse(change: Partial<Parameters<typeof createRehearsals>[0]>, game: TestGame, launch = launchOf()) {
  const layout = layoutOf(mkdtempSync(join(folder, 'data-')))
  mkdirSync(layout.server(S).files, { recursive: true })
  const rehearsals = createRehearsals({
    layout,
    backups: { restoreInto: async (server) => putGame(server.folders.files, game) },
    options: DEFAULT_GAMES_OPTIONS,
    now: Date.now,
    onUnexpected: (error) => assert.fail(error as Error),
    ...change,
  })
  const work = { kind: 'backups.rehearse' as const, backupId: 'bkp_1', launch, limits: NO_LIMITS, timeoutSeconds: 20 }
  const context = { taskId: 'job_1', serverId: S, signal: new AbortController().signal, report() {} }
  return rehearsals.handlers['backups.rehearse'](work, context)
}

function wrapper(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  return path
}

suite('rehearsals', needs('bubblewrap'), () => {
  test('It fails only if nothing was learnt about the backup: a bubblewrap that ends before the game is one such case', async () => {
    const refused = wrapper('refused', 'echo "bwrap: Creating new namespace failed" >&2; exit 1')
    const unfinished = wrapper('unfinished', 'exec bwrap --bind /nonexistent /x "$@"')
    for (const path of [refused, unfinished])
      await assert.rejects(rehearse({ findBubblewrap: async () => path }, 'plain'), (error) =>
        isFailure(error, 'isolation_missing'),
      )
    // A template may be older than the rule.
    await assert.rejects(rehearse({}, 'plain', launchOf({ environment: { LD_PRELOAD: 'x' } })), (error) =>
      isFailure(error, 'not_startable'),
    )
    assert.equal((await rehearse({}, 'plain')).outcome, 'passed')
    assert.equal((await rehearse({}, 'plain', launchOf({ argv: ['/bin/false'] }))).outcome, 'failed')
  })

  test('a game that fills the disk in its rehearsal is ended', async () => {
    let free = 1024 ** 3
    const freeBytes = async () => (free -= 300 * 1024 ** 2)
    await assert.rejects(rehearse({ freeBytes }, 'plain', launchOf({ ready: ['never said'] })), (error) =>
      isFailure(error, 'disk_full'),
    )
  })
})
