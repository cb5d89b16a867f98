// Backups from the command line, against the real service.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createWorld, type World } from '../../../../test/support/backups.ts'
import { needs } from '../../../../test/support/needs.ts'
import { createSavingGames } from '../../../../test/support/saving-games.ts'
import { startTestService, type TestService } from '../../../../test/support/service.ts'
import { runPiped } from '../../../../test/support/terminal.ts'

let service: TestService
let world: World
let folder: string
before(async () => {
  service = await startTestService()
  world = createWorld(service)
  folder = mkdtempSync(join(tmpdir(), 'gamekeeper-cli-'))
})
after(async () => {
  await service.stop()
  rmSync(folder, { recursive: true })
})

const run = (...args: string[]) => runPiped(args, { GAMEKEEPER_URL: service.url, GAMEKEEPER_TOKEN: service.adminToken })

async function json(...args: string[]) {
  const { code, stdout, stderr } = await run(...args, '--json')
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout)
}

test('create, list, show, lock, browse, verify, download, restore, delete', async () => {
  const server = await world.server({ 'world/level.dat': 'old', 'notes.txt': 'n', 'x.log': 'l' }, { name: 'Keep' })
  const made = await json('backup', 'create', 'Keep', '--name', 'First', '--ignore', '*.log', '--lock')
  assert.deepEqual([made.status, made.name, made.isLocked, made.fileCount], ['completed', 'First', true, 2])
  assert.deepEqual(
    (await json('backup', 'ls', 'Keep')).map(({ id }: { id: string }) => id),
    [made.id],
  )
  assert.match((await run('backup', 'ls', 'Keep')).stdout, /First +completed +yes +2/)
  assert.match((await run('backup', 'show', 'Keep', made.id)).stdout, /Ignored +\*\.log/)
  const refused = await run('backup', 'rm', 'Keep', made.id)
  assert.deepEqual([refused.code, /locked/.test(refused.stderr)], [5, true])
  assert.equal((await json('backup', 'unlock', 'Keep', made.id)).isLocked, false)
  assert.equal((await json('backup', 'lock', 'Keep', made.id)).isLocked, true)
  assert.match((await run('backup', 'browse', 'Keep', made.id)).stdout, /notes\.txt[\s\S]*world\//)
  assert.match((await run('backup', 'verify', 'Keep', made.id)).stdout, /Every block/)

  const one = await run('backup', 'download', 'Keep', made.id, '--path', '/world/level.dat', '-o', '-')
  assert.equal(one.stdout, 'old')
  const target = join(folder, 'keep.tar')
  const { sizeBytes } = await json('backup', 'download', 'Keep', made.id, '--format', 'tar', '-o', target)
  assert.equal(readFileSync(target).length, sizeBytes)

  await world.write(server, { 'world/level.dat': 'new' })
  const restored = await run('backup', 'restore', 'Keep', made.id)
  assert.equal(restored.code, 0, restored.stderr)
  assert.match(restored.stdout, /^Restored: 1 files written .* the previous files are in bkp_/)
  assert.equal(readFileSync(join(world.folder(server), 'world/level.dat'), 'utf8'), 'old')
  await run('backup', 'unlock', 'Keep', made.id)
  assert.deepEqual(await json('backup', 'rm', 'Keep', made.id), { deleted: [made.id] })
  assert.equal((await run('backup', 'show', 'Keep', made.id)).code, 4)
  assert.match((await run('backup', 'recover')).stdout, /^0 backups and 0 servers recovered/)
})

test('a dry run counts what a backup would leave out, and makes none', async () => {
  await world.server({ 'level.dat': 'level', 'a.log': 'a', 'b.log': 'bb' }, { name: 'Counted' })
  const { stdout } = await run('backup', 'create', 'Counted', '--ignore', '*.log', '--dry-run')
  assert.match(stdout, /^Kept +1 file, 5 B$/m)
  assert.match(stdout, /^Left out +2 files, 3 B$/m)
  assert.equal((await json('backup', 'create', 'Counted', '--dry-run')).kept.fileCount, 3)
  assert.deepEqual(await json('backup', 'ls', 'Counted'), [])
})

test('versions of a file, and what changed between backups or since one', async () => {
  const server = await world.server({ 'level.dat': 'old', 'gone.txt': 'g' }, { name: 'History' })
  const first = await json('backup', 'create', 'History', '--name', 'First')
  await world.write(server, { 'level.dat': 'newer', 'new.txt': 'n' })
  rmSync(join(world.folder(server), 'gone.txt'))
  const second = await json('backup', 'create', 'History', '--name', 'Second')
  const held = await json('backup', 'versions', 'History', '/level.dat')
  assert.deepEqual(
    held.map(({ backupId, sizeBytes }: { backupId: string; sizeBytes: number }) => [backupId, sizeBytes]),
    [
      [second.id, 5],
      [first.id, 3],
    ],
  )
  assert.match(
    (await run('backup', 'versions', 'History', '/gone.txt')).stdout,
    new RegExp(`^${first.id} .* 1 B `, 'm'),
  )
  assert.match((await run('backup', 'versions', 'History', '/nowhere')).stderr, /No backup contains it/)
  const changes = await json('backup', 'compare', 'History', 'First', 'Second')
  const told = changes.map(({ change, path }: { change: string; path: string }) => `${change} ${path}`)
  assert.deepEqual(told, ['removed /gone.txt', 'changed /level.dat', 'added /new.txt'])
  assert.equal((await json('backup', 'compare', 'History', 'First', 'Second', '--limit', '1')).length, 1)
  assert.match((await run('backup', 'compare', 'History', 'latest')).stderr, /Nothing has changed\.$/m)
  await world.write(server, { 'level.dat': 'newest' })
  assert.match((await run('backup', 'compare', 'History', 'Second')).stdout, /^changed +5 B +6 B +\/level\.dat$/m)
})

test('rules and schedules', async () => {
  await world.server({}, { name: 'Planned' })
  assert.equal((await json('backup', 'keep', 'Planned', '--last', '2', '--daily', '7')).keepDaily, 7)
  const policy = await json('backup', 'keep', 'Planned', '--daily', 'none')
  assert.deepEqual([policy.keepLast, policy.keepDaily], [2, null])
  assert.match((await run('backup', 'keep', 'Planned', '--dry-run')).stdout, /0 would be deleted, 0 kept/)
  const [added] = await json('schedule', 'add', 'Planned', 'Nightly', '0 4 * * *', '--zone', 'Europe/Berlin')
  assert.equal(added.timeZone, 'Europe/Berlin')
  const [off] = await json('schedule', 'set', 'Planned', added.id, '--enabled', 'no')
  assert.equal(off.nextRunAt, null)
  assert.match((await run('schedule', 'ls', 'Planned')).stdout, /Nightly +0 4 \* \* \* +Europe\/Berlin +off/)
  assert.equal((await run('schedule', 'set', 'Planned', added.id, '--enabled', 'maybe')).code, 2)
  assert.equal((await run('schedule', 'rm', 'Planned', added.id)).code, 0)
})

test('rehearse, and restore while the game runs', needs('bubblewrap'), async () => {
  const games = createSavingGames(service)
  await games.addTemplate('saving')
  const server = await games.run({ 'level.dat': 'old' }, { name: 'Played' })
  const made = await json('backup', 'create', 'Played', '--name', 'Sound')
  assert.match((await run('backup', 'show', 'Played', made.id)).stdout, /Consistency +quiesced, held still for \d+ ms/)
  await games.write(server, { 'level.dat': 'new' })
  assert.match((await run('backup', 'restore', 'Played', made.id)).stderr, /running|runs/)
  assert.equal((await run('backup', 'restore', 'Played', made.id, '--stop')).code, 0)
  assert.equal(games.read(server, 'level.dat'), 'old')
  const passed = await run('backup', 'rehearse', 'Played', made.id, '--timeout', '60')
  assert.deepEqual([passed.code, passed.stdout], [0, 'The game came up.\n'], passed.stderr)
  await games.reach(server, 'running')
  await games.power(server, 'kill')
  await games.reach(server, 'stopped')
  await games.write(server, { 'a.dat': 'torn' })
  await json('backup', 'create', 'Played', '--name', 'Wrecked')
  const failed = await run('backup', 'rehearse', 'Played', 'Wrecked')
  assert.equal(failed.code, 1)
  assert.match(failed.stdout, /The world is torn[\s\S]*Failed\. The game ended before it was up/)
  assert.match((await run('backup', 'show', 'Played', 'Wrecked')).stdout, /Last rehearsal +failed/)
})
