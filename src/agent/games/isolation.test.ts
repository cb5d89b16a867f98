// A game is a stranger's code: what it tries to read and to leave behind.
import assert from 'node:assert/strict'
import { lstatSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { needs } from '../../../test/support/needs.ts'
import { DEFAULT_GAME_UIDS } from '../../contract/fixed-limits.ts'
import { openGames } from './games.testing.ts'

const S = 'srv_castle'
const isRoot = process.getuid?.() === 0

suite('isolation', needs('bubblewrap'), () => {
  test('as root, each server has a user of its own, who owns its files, and no symlink gives it more', async (context) => {
    if (!isRoot) return context.skip('only root gives files away')
    await using harness = await openGames()
    const outside = join(harness.dataDir, 'outside')
    mkdirSync(outside)
    writeFileSync(join(outside, 'file'), 'x')
    for (const serverId of [S, 'srv_other']) {
      await harness.create(serverId, 'plain')
      const files = harness.filesOf(serverId)
      mkdirSync(join(files, 'world'))
      writeFileSync(join(files, 'world', 'level.dat'), 'x')
      symlinkSync(outside, join(files, 'link'))
      await harness.power(serverId, 'start')
      await harness.reach(serverId, 'running')
    }
    const ownerOf = (path: string) => lstatSync(path).uid
    const owners = [S, 'srv_other'].map((serverId) => {
      const files = harness.filesOf(serverId)
      const all = ['.', 'start', 'world', 'world/level.dat', 'link'].map((name) => ownerOf(join(files, name)))
      assert.equal(new Set(all).size, 1, `all of ${serverId} belongs to one user`)
      return all[0] as number
    })
    assert.equal(new Set(owners).size, 2)
    assert.ok(owners.every((uid) => uid >= DEFAULT_GAME_UIDS.first && uid <= DEFAULT_GAME_UIDS.last))
    assert.deepEqual([ownerOf(outside), ownerOf(join(outside, 'file'))], [0, 0])
    await harness.power(S, 'stop')
    await harness.reach(S, 'stopped')
    assert.equal(ownerOf(join(harness.filesOf(S), 'world.txt')), owners[0], 'it could write as itself')
  })
})
