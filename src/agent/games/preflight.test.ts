// What is found before a start.
import assert from 'node:assert/strict'
import { chmodSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { needs } from '../../../test/support/needs.ts'
import { type ErrorCode, isFailure } from '../../contract/errors.ts'
import { openGames } from './games.testing.ts'

const S = 'srv_castle'

suite('before a start', needs('bubblewrap'), () => {
  test('what keeps a game from starting is found before, with a code and what to do', async () => {
    await using harness = await openGames()
    await harness.create(S, 'plain')
    const refused = async (change: Parameters<typeof harness.power>[2], code: ErrorCode, what: RegExp) => {
      await assert.rejects(harness.power(S, 'start', change), (error) => {
        assert.ok(isFailure(error, code), String(error))
        assert.match(error.detail, what)
        return true
      })
      assert.equal((await harness.games.read({ serverId: S })).power.state, 'stopped')
    }
    await using taken = createServer().listen(0, '0.0.0.0')
    await new Promise((resolve) => taken.once('listening', resolve))
    const { port } = taken.address() as { port: number }
    await refused({ ports: [{ name: 'game', port, protocol: 'tcp' }] }, 'port_taken', new RegExp(`Port ${port}`))
    await refused({ argv: ['no-such-program'] }, 'not_startable', /not installed/)
    await refused({ argv: ['./missing'] }, 'not_startable', /\/missing is missing/)
    await refused({ workingDirectory: '/nowhere' }, 'not_startable', /\/nowhere is missing/)
    await refused({ shellLine: 'echo $HOME' }, 'not_startable', /shell/)
    chmodSync(join(harness.filesOf(S), 'start'), 0o644)
    await refused({}, 'not_startable', /not executable/)
    rmSync(join(harness.filesOf(S), 'start'))
    await refused({}, 'not_startable', /missing/)
    assert.deepEqual(await harness.linesOf(S), [])
  })
})
