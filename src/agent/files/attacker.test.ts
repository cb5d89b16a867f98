// Somebody inside the server swaps a directory for a symlink to the outside, as fast as they can, while we work in it.
// Nothing outside may change, and nothing from outside may come in. GAMEKEEPER_ATTACK_ROUNDS sets how often.
import assert from 'node:assert/strict'
import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { isFailure } from '../../contract/errors.ts'
import { layout } from '../layout.ts'
import { writeArchive } from './archives/formats.ts'
import { pack, treeEntries } from './archives/pack.ts'
import { unpack } from './archives/unpack.ts'
import { openContent, streamContent, writeContent } from './content.ts'
import { createAgentFiles } from './index.ts'
import { fillTree, openDescriptors } from './trees.testing.ts'

const ROUNDS = Number(process.env.GAMEKEEPER_ATTACK_ROUNDS ?? 300)
const SECRET = 'what lies outside'
const serverId = 'srv_test'

/** On tmpfs where there is one: syncing to a disk would only leave the attacker fewer chances. */
function workplace(t: TestContext): string {
  const base = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'gamekeeper-attack-'))
  t.after(() => rmSync(base, { recursive: true, force: true }))
  return base
}

/** Work that finds the directory gone makes it anew: the attacker then throws its own away and goes on with that one. */
const ATTACKER = `
const { renameSync, rmSync, symlinkSync, unlinkSync } = require('node:fs')
const [, , directory, outside] = process.argv
let swaps = 0
const worked = (work) => { try { work(); return true } catch { return false } }
process.once('message', () => process.send(swaps, () => process.exit()))
process.send('ready')
function attack() {
  for (let i = 0; i < 200; i++) {
    if (!worked(() => renameSync(directory, directory + '.real'))) rmSync(directory + '.real', { recursive: true, force: true })
    if (worked(() => symlinkSync(outside, directory))) swaps++
    worked(() => unlinkSync(directory))
    worked(() => renameSync(directory + '.real', directory))
  }
  setImmediate(attack)
}
attack()
`

function picture(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => {
    const { ino, mode, mtimeMs, ctimeMs, size } = statSync(join(folder, name))
    return [name, ino, mode, mtimeMs, ctimeMs, size].join(' ')
  })
}

/** `grep -r` follows no link that it meets: a copied link is a link, not what it points to. */
function secretsIn(folder: string): string {
  return spawnSync('grep', ['-rl', SECRET, folder], { encoding: 'utf8' }).stdout
}

describe('Every path from outside goes through the sandbox.', () => {
  test('No path and no symlink leads out, even if the game turns directories into symlinks while we work.', async (t) => {
    t.diagnostic(`${ROUNDS} rounds of everything, with an attacker swapping directories`)
    const base = workplace(t)
    const outside = join(base, 'outside')
    fillTree(outside, { x: SECRET, 'sub/y': SECRET, 'a.tar': SECRET })
    const places = layout(join(base, 'data'))
    const { files, root } = places.server(serverId)
    fillTree(files, { 'd/x': 'inside', 'd/sub/y': 'inside', 'safe/n/x': 'n', 'safe/z': 'z' })
    const agent = createAgentFiles({ layout: places, onUnexpected: assert.ifError })
    await agent.start()
    await agent.sweep()
    const server = agent.server(serverId)
    let jobs = 0
    const context = () => ({
      taskId: `job_${++jobs}`,
      serverId,
      signal: new AbortController().signal,
      report: () => {},
    })
    await pack(
      server,
      { kind: 'files.pack', root: '/safe', files: ['n', 'z'], format: 'tar', target: '/a.tar' },
      context(),
    )
    const before = picture(outside)
    const descriptors = openDescriptors()

    const script = join(base, 'attacker.cjs')
    writeFileSync(script, ATTACKER)
    const attacker = fork(script, [join(files, 'd'), outside], { execArgv: [] })
    await once(attacker, 'message')

    let requests = 0
    const request = <T extends object>(fields: T) => ({ serverId, requestId: `${++requests}`, ...fields })
    const body = async function* () {
      yield Buffer.from('inside')
    }
    const downloaded = async (stream: AsyncIterable<Uint8Array>) => {
      assert.ok(!Buffer.concat(await Array.fromAsync(stream)).includes(SECRET))
    }
    const operations: Record<string, (round: number) => Promise<unknown>> = {
      write: () => writeContent(server, '/d/x', body()),
      'write deeper': () => writeContent(server, '/d/sub/y', body()),
      copy: () => agent.copy(request({ location: '/d/x' })),
      'copy the directory': () => agent.copy(request({ location: '/d' })),
      remove: () => agent.remove(request({ root: '/d', files: ['x', 'sub'] })),
      'remove the copies': () => agent.remove(request({ root: '/', files: ['d copy', 'moved', 'd/x copy'] })),
      'change modes': (round) => agent.setMode(request({ root: '/d', files: ['x', 'sub'], mode: 0o700 | (round % 2) })),
      'make a folder': (round) => agent.makeFolder({ serverId, path: '/d/sub', name: `f${round % 7}` }),
      'move out': (round) => agent.move(request({ moves: [{ from: '/d/x', to: `/moved/${round}` }] })),
      unpack: () =>
        unpack(server, { kind: 'files.unpack', path: '/a.tar', directory: '/d', overwrite: true }, context()),
      read: () => downloaded(streamContent(openContent(server, '/d/x').file)),
      download: () => downloaded(writeArchive('tar', treeEntries(server.files, [], [['d']]))),
      list: async () =>
        assert.ok(!(await agent.list({ serverId, path: '/d' })).entries.some(({ name }) => name === 'a.tar')),
      search: async () => {
        const { matches } = await agent.search({ serverId, query: SECRET, content: true, path: '/d' })
        assert.deepEqual(matches, [])
      },
    }
    const tally = { done: 0, absent: 0, refused: 0 }
    let swaps = 0
    try {
      for (let round = 0; round < ROUNDS; round++) {
        if (round % 20 === 0) await agent.emptyTrash({ serverId })
        for (const [name, operation] of Object.entries(operations)) {
          try {
            await operation(round)
            tally.done++
          } catch (error) {
            if (!isFailure(error)) throw new Error(name, { cause: error })
            if (error.code === 'invalid_path') tally.refused++
            else tally.absent++
          }
        }
      }
    } finally {
      attacker.send('stop')
      ;[swaps] = await once(attacker, 'message')
      await once(attacker, 'exit')
    }
    t.diagnostic(`${swaps} swaps, ${tally.done} done, ${tally.absent} found nothing, ${tally.refused} refused a link`)
    assert.ok(
      swaps > ROUNDS && tally.done > ROUNDS && tally.refused > ROUNDS / 10,
      'the attack and the work did not meet',
    )
    assert.deepEqual(picture(outside), before)
    assert.equal(secretsIn(root), '')
    assert.deepEqual(readdirSync(server.folders.staging), [])
    assert.deepEqual(openDescriptors(), descriptors)
    await agent.stop()
  })
})
