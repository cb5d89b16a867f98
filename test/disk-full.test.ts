// A disk that fills up while a backup is made, as somebody sees it who asked for the backup over HTTP.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { assertSameTree, snapshot } from '../src/agent/backups/backups.testing.ts'
import { mount, withoutRoot } from '../src/agent/files/trees.testing.ts'
import { createHttp, type Http } from './support/http.ts'
import { needs } from './support/needs.ts'
import { killLeftovers, spawnService } from './support/process.ts'
import { until } from './support/until.ts'

after(killLeftovers)

const ADMIN = `gk_admin_${randomBytes(32).toString('hex')}`
const MIB = 1024 * 1024

async function jobOf(http: Http, path: string, body?: object) {
  const { body: asked } = await http.call('POST', path, body)
  const [, , serverId = ''] = path.split('/')
  return until(async () => {
    const { body: job } = await http.call('GET', `/servers/${serverId}/jobs/${asked.id}`)
    return job.status !== 'queued' && job.status !== 'running' && job
  })
}

/** Not even the row: the request itself is refused, and works again as soon as there is room. */
async function nothingFits(http: Http, serverId: string, filler: string): Promise<void> {
  fillUp(filler)
  const refused = await http.call('POST', `/backups/${serverId}`, {})
  assert.deepEqual([refused.status, refused.body.code], [507, 'disk_full'])
  assert.equal((await http.call('GET', `/backups/${serverId}`)).body.data.length, 1)
  const unready = await fetch(`${http.url}/readyz`)
  assert.equal(unready.status, 503)
  assert.match(((await unready.json()) as { checks: Record<string, string> }).checks.dataDirectory ?? '', /^disk_full:/)
  rmSync(filler)
  await until(async () => (await fetch(`${http.url}/readyz`)).status === 200)
}

function fillUp(path: string): void {
  const fd = openSync(path, 'w')
  try {
    for (;;) writeSync(fd, Buffer.alloc(MIB))
  } catch (error) {
    assert.equal((error as { code?: string }).code, 'ENOSPC')
  } finally {
    closeSync(fd)
  }
}

for (const [label, folderOnDisk] of [
  ['the disk of the store', 'backups'],
  ['the one disk that has everything, the database too', '.'],
] as const) {
  test(`${label} is full: the backup fails and says so, and nothing else is harmed`, {
    skip: withoutRoot(),
  }, async (t) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'gamekeeper-full-'))
    t.after(() => rmSync(dataDir, { recursive: true, force: true }))
    const disk = join(dataDir, folderOnDisk)
    mkdirSync(disk, { recursive: true })
    using _mounted = mount(disk, '-t', 'tmpfs', '-o', 'size=64m', 'none')
    const env = { GAMEKEEPER_DATA_DIR: dataDir, GAMEKEEPER_ADMIN_TOKEN: ADMIN, GAMEKEEPER_RATE_LIMIT: '0' }
    const service = await spawnService(env)
    try {
      const http = createHttp(service.url, ADMIN)
      const { id } = (await http.call('POST', '/servers', { name: 'Castle' })).body
      const files = join(dataDir, 'servers', id, 'files')
      const free = () => statfsSync(disk).bavail * statfsSync(disk).bsize
      writeFileSync(join(files, 'kept'), randomBytes(2 * MIB))
      const tree = snapshot(files)
      const early = await http.backup(id, { name: 'Early' })
      assert.equal(early.status, 'completed')
      if (folderOnDisk === '.' && !needs('bubblewrap').skip) {
        const { status, error } = await jobOf(http, `/backups/${id}/${early.id}/rehearse`, {})
        assert.deepEqual([status, error?.code, existsSync(join(dataDir, 'rehearsals'))], ['failed', 'disk_full', false])
      }

      writeFileSync(join(files, 'more'), randomBytes(8 * MIB))
      if (folderOnDisk === '.') await nothingFits(http, id, join(disk, 'filler'))
      for (const room of [4 * MIB, 1 * MIB]) {
        const filler = join(disk, 'filler')
        writeFileSync(filler, Buffer.alloc(free() - room))
        const before = free()
        const failed = await http.backup(id)
        assert.deepEqual([failed.status, failed.error?.code], ['failed', 'disk_full'], service.output())
        // The database has written what happened; of the store nothing is left.
        assert.ok(before - free() < MIB / 2, `${before - free()} bytes are not given back`)
        rmSync(filler)
      }
      const { body: activity } = await http.call('GET', `/servers/${id}/activity?event=backup.failed`)
      assert.equal(activity.data.length, 2)
      assert.deepEqual((await jobOf(http, `/backups/${id}/${early.id}/verify`)).result.damage, [])
      const next = await http.backup(id, { name: 'Next' })
      assert.equal(next.status, 'completed')
      const full = snapshot(files)
      const restore = (backupId: string) =>
        jobOf(http, `/backups/${id}/${backupId}/restore`, { mode: 'replace', safetyBackup: false }).then(
          (job) => job.status,
        )
      assert.equal(await restore(early.id), 'completed')
      assertSameTree(snapshot(files), tree)
      assert.equal(await restore(next.id), 'completed')
      assertSameTree(snapshot(files), full)
      assert.equal((await fetch(`${service.url}/readyz`)).status, 200)
    } finally {
      await service.kill('SIGTERM')
    }
  })
}

test('a full disk: a change of files is refused and not made, or made and recorded; the trash can be emptied', {
  skip: withoutRoot(),
}, async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'gamekeeper-full-'))
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  using _mounted = mount(dataDir, '-t', 'tmpfs', '-o', 'size=64m', 'none')
  const env = { GAMEKEEPER_DATA_DIR: dataDir, GAMEKEEPER_ADMIN_TOKEN: ADMIN, GAMEKEEPER_RATE_LIMIT: '0' }
  const service = await spawnService(env)
  try {
    const http = createHttp(service.url, ADMIN)
    const { id } = (await http.call('POST', '/servers', { name: 'Castle' })).body
    const [files, filler] = [join(dataDir, 'servers', id, 'files'), join(dataDir, 'filler')]
    for (const name of ['a', 'b', 'trashed']) writeFileSync(join(files, name), randomBytes(MIB))
    assert.equal((await http.call('DELETE', `/files/${id}`, { files: ['trashed'] })).status, 200)
    fillUp(filler)
    const changes = [
      [
        'file.moved',
        'POST',
        '/move',
        { moves: [{ from: '/a', to: '/moved' }] },
        () => existsSync(join(files, 'moved')),
      ],
      [
        'file.mode_changed',
        'POST',
        '/mode',
        { files: ['b'], mode: '0600' },
        () => (statSync(join(files, 'b')).mode & 0o777) === 0o600,
      ],
      ['file.folder_created', 'POST', '/folder', { name: 'made' }, () => existsSync(join(files, 'made'))],
      ['file.deleted', 'DELETE', '', { files: ['b'] }, () => !existsSync(join(files, 'b'))],
    ] as const
    const done = new Map<string, boolean>()
    for (const [event, method, path, body, isDone] of changes) {
      const { status } = await http.call(method, `/files/${id}${path}`, body)
      assert.ok(status < 300 || status === 507, `${event}: ${status}`)
      assert.equal(isDone(), status < 300, `${event}: ${status}, and done: ${isDone()}`)
      done.set(event, isDone())
    }
    // What there was in the trash gives its space back, and says so, however full the disk is.
    const emptied = await http.call('DELETE', `/files/${id}/trash`)
    assert.deepEqual([emptied.status, readdirSync(join(files, '../trash'))], [200, []], JSON.stringify(emptied.body))
    rmSync(filler)
    const count = async (event: string) =>
      (await http.call('GET', `/servers/${id}/activity?event=${event}`)).body.data.length as number
    const expected = new Map([...done].map(([event, isDone]) => [event, isDone ? 1 : 0]))
    expected.set('file.deleted', 1 + (expected.get('file.deleted') ?? 0)).set('file.trash_emptied', 1)
    for (const [event, entries] of expected) await until(async () => (await count(event)) >= entries)
    for (const [event, entries] of expected) assert.equal(await count(event), entries, event)
  } finally {
    await service.kill('SIGTERM')
  }
})
