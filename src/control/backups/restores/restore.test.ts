// Restoring, looking into backups and getting them out, through the front door.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createWorld, type World } from '../../../../test/support/backups.ts'
import { onBothEngines } from '../../../../test/support/engines.ts'
import { startTestService, type TestService } from '../../../../test/support/service.ts'
import { until } from '../../../../test/support/until.ts'

onBothEngines('restore', (engine) => {
  let service: TestService
  let world: World
  before(async () => {
    service = await startTestService({ engine })
    world = createWorld(service)
  })
  after(() => service.stop())

  const text = (server: string, path: string) => readFile(join(world.folder(server), path), 'utf8')

  test('the tree is what it was: changed, deleted and new files, symlinks, modes and empty folders', async () => {
    const server = await world.server({ 'world/level.dat': 'old', 'world/gone.dat': 'gone', 'run.sh': '#!/bin/sh' })
    const top = world.folder(server)
    await mkdir(join(top, 'empty/deeper'), { recursive: true })
    await symlink('world/level.dat', join(top, 'link'))
    await chmod(join(top, 'run.sh'), 0o755)
    const { id } = await world.backup(server)
    await writeFile(join(top, 'world/level.dat'), 'new')
    await rm(join(top, 'world/gone.dat'))
    await rm(join(top, 'empty'), { recursive: true })
    await rm(join(top, 'link'))
    await chmod(join(top, 'run.sh'), 0o600)
    await world.write(server, { 'made-since.txt': 'since' })

    const job = await world.restore(server, id)
    assert.equal(job.status, 'completed', JSON.stringify(job.error))
    assert.equal(await text(server, 'world/level.dat'), 'old')
    assert.equal(await text(server, 'world/gone.dat'), 'gone')
    assert.deepEqual(await readdir(join(top, 'empty/deeper')), [])
    assert.equal(await readlink(join(top, 'link')), 'world/level.dat')
    assert.equal((await lstat(join(top, 'run.sh'))).mode & 0o777, 0o755)
    assert.deepEqual((await readdir(top)).sort(), ['empty', 'link', 'run.sh', 'world'])
    const trash = (await service.call('GET', `/files/${server}/trash`)).body.data
    assert.ok(trash.some((item: { path: string }) => item.path === '/made-since.txt'))

    const { safetyBackupId } = job.result as { safetyBackupId: string }
    const safety = await world.ended(server, safetyBackupId)
    assert.equal(safety.status, 'completed')
    assert.equal((await world.restore(server, safetyBackupId, { safetyBackup: false })).status, 'completed')
    assert.equal(await text(server, 'world/level.dat'), 'new')
    assert.equal(await text(server, 'made-since.txt'), 'since')
    const events = await world.events(server)
    assert.ok(events.includes('backup.restore_started') && events.includes('backup.restored'))
  })

  test('merge leaves what the backup does not have; paths restores those alone', async () => {
    const server = await world.server({ 'a.txt': 'a1', 'dir/b.txt': 'b1' })
    const { id } = await world.backup(server)
    await world.write(server, { 'a.txt': 'a2', 'dir/b.txt': 'b2', 'dir/c.txt': 'c2' })
    const one = await world.restore(server, id, { paths: ['/dir/b.txt'], safetyBackup: false })
    assert.equal(one.status, 'completed')
    assert.deepEqual([await text(server, 'a.txt'), await text(server, 'dir/b.txt')], ['a2', 'b1'])
    assert.equal(await text(server, 'dir/c.txt'), 'c2')
    assert.equal((await world.restore(server, id, { mode: 'merge', safetyBackup: false })).status, 'completed')
    assert.deepEqual([await text(server, 'a.txt'), await text(server, 'dir/c.txt')], ['a1', 'c2'])
    assert.equal((await service.call('GET', `/backups/${server}`)).body.data.length, 1)
  })

  test('into another server, which keeps what it had in a backup of its own', async () => {
    const server = await world.server({ 'world/level.dat': 'castle' })
    const other = await world.server({ 'old.txt': 'old' }, { limits: { backups: 0 } })
    const { id } = await world.backup(server)
    const job = await world.restore(server, id, { targetServerId: other })
    assert.equal(job.status, 'completed', JSON.stringify(job.error))
    assert.deepEqual(await readdir(world.folder(other)), ['world'])
    const { data } = (await service.call('GET', `/backups/${other}`)).body
    assert.equal(data.length, 1)
    assert.deepEqual(await world.names(other, data[0].id), ['old.txt'])
    const narrow = (await service.mint(['*'], [server])).token
    const body = { mode: 'replace', targetServerId: other }
    const refused = await service.call('POST', `/backups/${server}/${id}/restore`, { body, token: narrow })
    assert.equal(refused.status, 404)
  })

  test('what has not completed cannot be restored, read or verified', async () => {
    const server = await world.server({ big: 'x'.repeat(30_000_000) })
    const ids = await world.slowly(async () => {
      const [first = '', second = ''] = await world.start(server, 2)
      const one = `/backups/${server}/${second}`
      for (const [method, path, body] of [
        ['POST', `${one}/restore`, { mode: 'replace' }],
        ['POST', `${one}/verify`],
        ['GET', `${one}/files`],
        ['POST', `${one}/download`],
        ['GET', `/backups/${server}/compare?from=${second}`],
      ] as const) {
        assert.equal((await service.call(method, path, { body })).body.code, 'backup_not_ready', path)
      }
      return [first, second]
    })
    for (const id of ids) await world.ended(server, id)
  })

  test('While a restore is queued or running, other restores and backups of the server are refused with server_busy', async () => {
    const server = await world.server({ big: 'x'.repeat(60_000_000) })
    const { id } = await world.backup(server)
    await writeFile(join(world.folder(server), 'big'), 'y'.repeat(60_000_000))
    const restore = () => service.call('POST', `/backups/${server}/${id}/restore`, { body: { mode: 'replace' } })
    const started = await world.slowly(async () => {
      const reply = await restore()
      assert.equal(reply.status, 202)
      assert.equal((await restore()).body.code, 'server_busy')
      assert.equal((await service.call('POST', `/backups/${server}`)).body.code, 'server_busy')
      assert.equal((await service.call('DELETE', `/backups/${server}/${id}`)).body.code, 'server_busy')
      return reply
    })
    assert.equal((await world.jobEnded(server, started.body.id)).status, 'completed')
    const running = await world.slowly(async () => {
      const [backupId = ''] = await world.start(server, 1)
      assert.equal((await restore()).body.code, 'server_busy')
      return backupId
    })
    await world.ended(server, running)
  })

  test('The backup being restored cannot be deleted (server_busy) or expire meanwhile.', async () => {
    const server = await world.server({ a: 'first' })
    const safeties: string[] = []
    for (const state of ['second', 'third', 'fourth']) {
      const { id } = await world.backup(server)
      await world.write(server, { a: state })
      safeties.push(((await world.restore(server, id)).result as { safetyBackupId: string }).safetyBackupId)
    }
    const oldest = await world.restore(server, safeties[0] ?? '')
    assert.equal(oldest.status, 'completed', JSON.stringify(oldest.error))
    assert.equal(await text(server, 'a'), 'second')
    const [newest, older] = (await service.call('GET', `/backups/${server}?status=completed`)).body.data.filter(
      ({ name }: { name: string }) => !name.startsWith('Before'),
    )
    await service.call('PUT', `/backups/${server}/retention`, { body: { keepLast: 1 } })
    assert.equal((await world.restore(server, older.id)).status, 'completed')
    assert.equal(await text(server, 'a'), 'first')
    assert.equal((await service.call('GET', `/backups/${server}/${newest.id}`)).status, 200)
  })

  test('another server is not filled beyond its quota', async () => {
    const server = await world.server({ big: 'x'.repeat(3_000_000) })
    const { id } = await world.backup(server)
    const small = await world.server({ mine: 'mine' }, { limits: { diskBytes: 2_000_000 } })
    const job = await world.restore(server, id, { targetServerId: small, safetyBackup: false })
    assert.equal(job.error?.code, 'quota_exceeded')
    assert.deepEqual(await readdir(world.folder(small)), ['mine'])
  })

  test('a restore that is cancelled leaves the files as they were', async () => {
    const server = await world.server({ big: 'x'.repeat(40_000_000) })
    const { id } = await world.backup(server)
    await world.write(server, { big: 'mine', 'also mine': randomBytes(20_000_000) })
    await world.slowly(async () => {
      const started = await service.call('POST', `/backups/${server}/${id}/restore`, { body: { mode: 'replace' } })
      assert.equal((await service.call('DELETE', `/servers/${server}/jobs/${started.body.id}`)).status, 202)
      const job = await world.jobEnded(server, started.body.id)
      assert.equal(job.status, 'cancelled')
    })
    assert.equal(await text(server, 'big'), 'mine')
    assert.equal((await world.backup(server)).status, 'completed')
  })

  test('The next backup that still has the content repairs it, and the next verification, a day later at most, clears the mark.', async () => {
    const server = await world.server({ 'a.bin': randomBytes(400_000), 'b.bin': randomBytes(1000) })
    const { id } = await world.backup(server)
    await damagePacks(service)
    await service.restart()
    const verify = await service.call('POST', `/backups/${server}/${id}/verify`)
    assert.equal(verify.status, 202)
    const job = await world.jobEnded(server, verify.body.id)
    assert.equal(job.status, 'completed')
    const { damage } = job.result as { damage: { touches: { backupId: string }[] }[] }
    assert.ok(damage.some(({ touches }) => touches.some(({ backupId }) => backupId === id)))
    const shown = (await service.call('GET', `/backups/${server}/${id}`)).body
    assert.equal(shown.error.code, 'backup_damaged')
    assert.equal(shown.verifiedAt, null)
    assert.equal(
      (await service.call('POST', `/backups/${server}/${id}/restore`, { body: { mode: 'replace' } })).body.code,
      'backup_damaged',
    )
    assert.ok((await world.events(server)).includes('backup.damage_found'))
    const ready = await fetch(`${service.url}/readyz`)
    assert.equal(ready.status, 503)
    assert.match(((await ready.json()) as { checks: { backups: string } }).checks.backups, /damaged/)
    const metrics = await (await fetch(`${service.url}/metrics`)).text()
    assert.match(metrics, /^gamekeeper_backups_damaged [1-9]/m)
    assert.match(metrics, /^gamekeeper_backup_damage_found_total [1-9]/m)
    const empty = await world.server({})
    const partly = await world.restore(server, id, { paths: ['/a.bin'], targetServerId: empty, safetyBackup: false })
    assert.equal(partly.error?.code, 'backup_damaged')
    assert.deepEqual(await readdir(world.folder(empty)), [])

    await world.backup(server)
    const again = await service.call('POST', `/backups/${server}/${id}/verify`)
    assert.equal((await world.jobEnded(server, again.body.id)).status, 'completed')
    const healed = (await service.call('GET', `/backups/${server}/${id}`)).body
    assert.equal(healed.error, null)
    assert.ok(healed.verifiedAt)
  })

  test('verified when every block is right', async () => {
    const server = await world.server({ 'fresh.bin': Buffer.alloc(300_000, 'fresh') })
    const { id } = await world.backup(server)
    const { body } = await service.call('POST', `/backups/${server}/${id}/verify`)
    const job = await world.jobEnded(server, body.id)
    assert.equal(job.status, 'completed', JSON.stringify(job.error))
    assert.ok((await service.call('GET', `/backups/${server}/${id}`)).body.verifiedAt)
    assert.ok((await world.events(server)).includes('backup.verified'))
  })

  test('streams the whole backup as a plain archive, the same bytes each time, so that a broken download resumes with a range', async () => {
    const server = await world.server({
      'world/level.dat': 'level',
      'ä b.txt': 'umlaut',
      'big.bin': Buffer.alloc(700_000, 'big'),
    })
    const { id } = await world.backup(server, { name: 'My: backup/1' })
    const where = `${service.url}/v1/game/backups/${server}/${id}/download`
    const authorization = `Bearer ${service.adminToken}`
    const unpack = {
      zip: ['unzip', '-q'],
      tar: ['tar', 'xf'],
      'tar.gz': ['tar', 'xzf'],
      'tar.zst': ['tar', '--zstd', '-xf'],
    }
    for (const [format, command] of Object.entries(unpack)) {
      const whole = await fetch(`${where}?format=${format}`, { headers: { authorization } })
      assert.equal(whole.status, 200, format)
      const bytes = Buffer.from(await whole.arrayBuffer())
      const folder = await mkdtemp(join(tmpdir(), 'gamekeeper-unpack-'))
      await writeFile(join(folder, 'archive'), bytes)
      execFileSync(command[0] ?? '', [...command.slice(1), 'archive'], { cwd: folder })
      assert.equal(await readFile(join(folder, 'world/level.dat'), 'utf8'), 'level')
      assert.equal(await readFile(join(folder, 'ä b.txt'), 'utf8'), 'umlaut')
      assert.equal((await readFile(join(folder, 'big.bin'))).length, 700_000)
      await rm(folder, { recursive: true })
      const half = Math.floor(bytes.length / 2)
      const etag = whole.headers.get('etag') ?? ''
      const rest = await fetch(`${where}?format=${format}`, {
        headers: { authorization, range: `bytes=${half}-`, 'if-range': etag },
      })
      assert.equal(rest.status, 206, format)
      assert.equal(rest.headers.get('content-range'), `bytes ${half}-${bytes.length - 1}/${bytes.length}`)
      assert.deepEqual(Buffer.from(await rest.arrayBuffer()), bytes.subarray(half))
      const middle = await fetch(`${where}?format=${format}`, { headers: { authorization, range: 'bytes=10-19' } })
      assert.deepEqual(Buffer.from(await middle.arrayBuffer()), bytes.subarray(10, 20))
    }
    const link = await service.call('POST', `/backups/${server}/${id}/download`, { body: { format: 'tar' } })
    const linked = await fetch(link.body.url)
    assert.equal(linked.status, 200)
    assert.match(linked.headers.get('content-disposition') ?? '', /My- backup-1\.tar/)
    assert.equal((await linked.arrayBuffer()).byteLength, Number(linked.headers.get('content-length')))
    const beyond = await fetch(`${where}?format=tar`, { headers: { authorization, range: 'bytes=99999999-' } })
    assert.equal(beyond.status, 416)
    const bad = await fetch(`${where}?format=rar`, { headers: { authorization } })
    assert.equal(bad.status, 400)
  })

  test('a link dies with its token', async () => {
    const server = await world.server({ a: '1' })
    const { id } = await world.backup(server)
    const { id: tokenId, token } = await service.mint(['backups:read'], [server])
    const { body } = await service.call('POST', `/backups/${server}/${id}/download`, { token, body: {} })
    assert.equal((await fetch(body.url)).status, 200)
    await service.call('DELETE', `/tokens/${tokenId}`)
    await until(async () => (await fetch(body.url)).status === 404)
  })

  test('browsed, one file read, versions listed, compared', async () => {
    const server = await world.server({ 'world/level.dat': 'one', 'world/a': 'a', 'world/b': 'b', 'readme.txt': 'r' })
    const first = await world.backup(server)
    await world.write(server, { 'world/level.dat': 'two!', 'new.txt': 'n' })
    await rm(join(world.folder(server), 'readme.txt'))
    const second = await world.backup(server)
    const one = `/backups/${server}/${first.id}`
    assert.deepEqual(await world.names(server, first.id), ['readme.txt', 'world'])
    const page = (await service.call('GET', `${one}/files?path=/world&limit=2`)).body
    const rest = (await service.call('GET', `${one}/files?path=/world&limit=2&cursor=${page.nextCursor}`)).body
    assert.deepEqual([...page.data, ...rest.data].map(({ name }) => name).sort(), ['a', 'b', 'level.dat'])
    assert.equal((await service.call('GET', `${one}/files?path=/none`)).status, 404)
    for (const at of [`${one}/files`, `${one}/files/content`, `/files/${server}/versions`]) {
      const { code, errors } = (await service.call('GET', `${at}?path=/../x`)).body
      assert.deepEqual([code, errors?.map((fault: { path: string }) => fault.path)], ['invalid_path', ['/path']], at)
    }

    const authorization = `Bearer ${service.adminToken}`
    const content = (path: string, range?: string) =>
      fetch(`${service.url}/v1/game${one}/files/content?path=${path}`, {
        headers: { authorization, ...(range ? { range } : {}) },
      })
    assert.equal(await (await content('/world/level.dat')).text(), 'one')
    const part = await content('/world/level.dat', 'bytes=1-')
    assert.deepEqual([part.status, await part.text()], [206, 'ne'])
    assert.equal((await content('/world')).status, 400)
    assert.equal((await content('/none')).status, 404)

    const { data: versions } = (await service.call('GET', `/files/${server}/versions?path=/world/level.dat`)).body
    assert.deepEqual(
      versions.map(({ backupId }: { backupId: string }) => backupId),
      [second.id, first.id],
    )
    assert.notEqual(versions[0].version, versions[1].version)
    const compare = async (query: string) => {
      const { body } = await service.call('GET', `/backups/${server}/compare?${query}`)
      return body.data.map(({ path, change }: { path: string; change: string }) => `${change} ${path}`).sort()
    }
    const changes = ['added /new.txt', 'changed /world/level.dat', 'removed /readme.txt']
    assert.deepEqual(await compare(`from=${first.id}&to=${second.id}`), changes)
    assert.deepEqual(await compare(`from=${first.id}`), changes)
    assert.deepEqual(await compare(`from=${second.id}`), [])
    assert.equal((await service.call('GET', `/backups/${server}/compare?from=bkp_none`)).status, 404)
  })
})

/** A byte in the middle of every pack of the store. */
async function damagePacks(service: TestService): Promise<void> {
  await service.halt()
  const store = join(service.dataDir, 'backups')
  for (const entry of await readdir(store, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name)
    if (!entry.isFile() || !file.includes('/packs/')) continue
    const bytes = await readFile(file)
    const at = Math.floor(bytes.length / 3)
    bytes[at] = (bytes[at] ?? 0) ^ 0xff
    await chmod(file, 0o600)
    await writeFile(file, bytes)
  }
}
