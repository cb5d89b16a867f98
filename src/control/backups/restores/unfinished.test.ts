// Restores that stop in the middle, through the front door: they say so, keep the server busy, and end by choice. Nothing
// that is newer than the restore is lost.
import assert from 'node:assert/strict'
import fs, { writeFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { sql } from 'kysely'
import { createWorld, type World } from '../../../../test/support/backups.ts'
import { withDatabase } from '../../../../test/support/database.ts'
import { onBothEngines } from '../../../../test/support/engines.ts'
import { withImmutable, withoutImmutable } from '../../../../test/support/immutable.ts'
import { startTestService, type TestService } from '../../../../test/support/service.ts'
import { until } from '../../../../test/support/until.ts'
import type { Job } from '../../../contract/jobs.ts'

const BYTES = { 'content-type': 'application/octet-stream' }

/** Runs `deed` once a restore is committed and before its first step: the instant after its plan. */
function afterCommit(deed: () => void): Disposable {
  const { renameSync } = fs
  const restore = () => {
    fs.renameSync = renameSync
    syncBuiltinESMExports()
  }
  fs.renameSync = (from, to) => {
    renameSync(from, to)
    if (!String(to).endsWith('/forward')) return
    restore()
    deed()
  }
  syncBuiltinESMExports()
  return { [Symbol.dispose]: restore }
}

onBothEngines('unfinished restores', (engine) => {
  let service: TestService
  let world: World
  before(async () => {
    service = await startTestService({ engine })
    world = createWorld(service)
  })
  after(() => service.stop())

  const at = (server: string, path: string) => join(world.folder(server), path)
  const text = (server: string, path: string) => readFile(at(server, path), 'utf8')
  const serverOf = async (server: string) => (await service.call('GET', `/servers/${server}`)).body
  const count = async (server: string, event: string) =>
    (await world.events(server)).filter((name) => name === event).length

  /** The content of everything in the trash, by the path that it had. */
  async function trashOf(server: string): Promise<[string, string][]> {
    const { data } = (await service.call('GET', `/files/${server}/trash`)).body
    const read = ({ id, path }: { id: string; path: string }): Promise<[string, string]> =>
      readFile(join(service.dataDir, 'servers', server, 'trash', id.slice(0, 30), id.slice(30)), 'utf8').then(
        (content) => [path, content],
        () => [path, '(directory)'],
      )
    return (await Promise.all((data as { id: string; path: string }[]).map(read))).sort()
  }

  async function finish(server: string, direction: 'forward' | 'back'): Promise<Job> {
    const reply = await service.call('POST', `/servers/${server}/restore/finish`, { body: { direction } })
    assert.equal(reply.status, 202, reply.text)
    return world.jobEnded(server, reply.body.id)
  }

  /** A restore of `old-1` to `old-4` over `new-1` to `new-4` that cannot take the third away. */
  async function stopped(): Promise<{ server: string; id: string; job: Job }> {
    const server = await world.server({ a: 'old-1', b: 'old-2', 'dir/c': 'old-3', d: 'old-4', gone: 'old-5' })
    const { id } = await world.backup(server)
    await world.write(server, { a: 'new-1', b: 'new-2', 'dir/c': 'new-3', d: 'new-4', made: 'new-5' })
    await rm(at(server, 'gone'))
    const job = await withImmutable(at(server, 'dir/c'), () => world.restore(server, id, { safetyBackup: false }))
    return { server, id, job }
  }

  const skip = withoutImmutable()

  test('the job fails with restore_unfinished, the activity has backup.restore_unfinished with the path and the reason, and unfinishedRestore of the server says the same', {
    skip,
  }, async () => {
    const { server, id, job } = await stopped()
    assert.equal(job.status, 'failed')
    assert.equal(job.error?.code, 'restore_unfinished')
    assert.match(job.error?.detail ?? '', /stopped in the middle at "\/dir\/c": operation not permitted \(EPERM\)/)
    const { unfinishedRestore, status } = await serverOf(server)
    assert.equal(status, 'ready')
    assert.deepEqual(
      { ...unfinishedRestore, since: typeof unfinishedRestore.since },
      {
        ...{ jobId: job.id, backupId: id, since: 'string', path: '/dir/c' },
        reason: 'operation not permitted (EPERM)',
      },
    )
    const { data } = (await service.call('GET', `/servers/${server}/activity?limit=100`)).body
    const entry = data.find(({ event }: { event: string }) => event === 'backup.restore_unfinished')
    assert.deepEqual(entry.properties, {
      ...{ jobId: job.id, backupId: id, path: '/dir/c' },
      reason: 'operation not permitted (EPERM)',
    })
    assert.equal(await count(server, 'backup.restore_failed'), 0)
    assert.equal(await count(server, 'backup.restored'), 0)
    await finish(server, 'back')
  })

  test('Until somebody chooses how it ends, even after a restart, file changes, uploads, backups and other restores of that server are refused with server_busy; reading works.', {
    skip,
  }, async () => {
    const { server, id } = await stopped()
    const tree = await readdir(world.folder(server), { recursive: true })
    for (const isRestarted of [false, true]) {
      if (isRestarted) await service.restart()
      assert.deepEqual(await readdir(world.folder(server), { recursive: true }), tree)
      for (const [method, path, body] of [
        ['PUT', `/files/${server}/content?path=/x`, 'bytes'],
        ['POST', `/files/${server}/folder`, { path: '/', name: 'x' }],
        ['POST', `/files/${server}/move`, { moves: [{ from: '/dir', to: '/x' }] }],
        ['POST', `/files/${server}/mode`, { files: ['dir'], mode: '0700' }],
        ['DELETE', `/files/${server}`, { root: '/', files: ['dir'] }],
        ['POST', `/files/${server}/pack`, { files: ['dir'] }],
        ['POST', `/backups/${server}`, {}],
        ['POST', `/backups/${server}/${id}/restore`, { mode: 'replace' }],
      ] as const) {
        const headers: Record<string, string> = typeof body === 'string' ? BYTES : {}
        const refused = await service.call(method, path, { body, headers })
        assert.equal(refused.body.code, 'server_busy', `${method} ${path} ${refused.text}`)
        assert.match(refused.body.detail, /restore\/finish/, path)
      }
      assert.equal((await service.call('GET', `/files/${server}/content?path=/dir/c`)).text, 'new-3')
      assert.equal((await service.call('GET', `/backups/${server}/${id}/files`)).status, 200)
      assert.equal((await serverOf(server)).unfinishedRestore.path, '/dir/c')
      assert.equal(await count(server, 'backup.restore_unfinished'), 1)
    }
    assert.equal((await finish(server, 'forward')).status, 'completed')
    assert.equal((await serverOf(server)).unfinishedRestore, null)
    assert.equal((await world.backup(server)).status, 'completed')
    const again = await service.call('POST', `/servers/${server}/restore/finish`, { body: { direction: 'back' } })
    assert.equal(again.body.code, 'not_found')
  })

  test('In either direction, nothing newer than the restore is replaced without going to the trash.', {
    skip,
  }, async () => {
    const { server } = await stopped()
    // A game goes on writing: in place of what was moved away, a directory where a file belongs, and something of its own.
    await writeFile(at(server, 'a'), 'newer-1')
    await mkdir(at(server, 'gone'))
    await writeFile(at(server, 'gone/inside'), 'newer-2')
    await writeFile(at(server, 'own'), 'newer-3')
    const job = await finish(server, 'forward')
    assert.equal(job.status, 'completed', JSON.stringify(job.error))
    const contents = await Promise.all(['a', 'b', 'dir/c', 'd', 'gone', 'own'].map((path) => text(server, path)))
    assert.deepEqual(contents, ['old-1', 'old-2', 'old-3', 'old-4', 'old-5', 'newer-3'])
    assert.deepEqual(await trashOf(server), [
      ['/a', 'new-1'],
      ['/a', 'newer-1'],
      ['/b', 'new-2'],
      ['/d', 'new-4'],
      ['/dir/c', 'new-3'],
      ['/gone', '(directory)'],
      ['/made', 'new-5'],
    ])
    assert.equal(await count(server, 'backup.restored'), 1)
  })

  test('Going back returns displaced files from the trash and removes restored ones, moving those changed since to the trash.', {
    skip,
  }, async () => {
    const { server } = await stopped()
    await writeFile(at(server, 'a'), 'newer-1')
    await writeFile(at(server, 'gone'), 'newer-2')
    const job = await finish(server, 'back')
    assert.equal(job.status, 'completed', JSON.stringify(job.error))
    assert.deepEqual((await readdir(world.folder(server))).sort(), ['a', 'b', 'd', 'dir', 'gone', 'made'])
    const contents = await Promise.all(['a', 'b', 'dir/c', 'd', 'made', 'gone'].map((path) => text(server, path)))
    assert.deepEqual(contents, ['new-1', 'new-2', 'new-3', 'new-4', 'new-5', 'newer-2'])
    assert.deepEqual(await trashOf(server), [['/a', 'newer-1']])
    assert.equal(await count(server, 'backup.restore_undone'), 1)
    assert.equal(await count(server, 'backup.restored'), 0)
    assert.equal((await world.backup(server)).status, 'completed')
  })

  test('If it stops again, you can choose either direction again.', { skip }, async () => {
    const { server } = await stopped()
    const before = await trashOf(server)
    await withImmutable(at(server, 'dir/c'), async () => {
      assert.equal((await finish(server, 'forward')).error?.code, 'restore_unfinished')
    })
    assert.equal(await count(server, 'backup.restore_unfinished'), 2)
    assert.deepEqual(await trashOf(server), before)
    await withImmutable(world.folder(server), async () => {
      assert.equal((await finish(server, 'back')).error?.code, 'restore_unfinished')
    })
    assert.equal((await finish(server, 'forward')).status, 'completed')
    assert.equal(await text(server, 'dir/c'), 'old-3')
    assert.deepEqual((await trashOf(server)).map(([, content]) => content).sort(), [
      ...['new-1', 'new-2', 'new-3', 'new-4', 'new-5'],
    ])
  })

  test('So does whatever a game writes, while the restore runs, to a path that the restore fills.', async () => {
    const server = await world.server({ a: 'old-1', 'deep/er/b': 'old-2', 'dir/c': 'old-3' })
    const { id } = await world.backup(server)
    await rm(world.folder(server), { recursive: true })
    await mkdir(world.folder(server))
    const deed = () => {
      writeFileSync(at(server, 'a'), 'newer-1')
      fs.mkdirSync(at(server, 'deep/er/b'), { recursive: true })
      writeFileSync(at(server, 'deep/er/b/inside'), 'newer-2')
      writeFileSync(at(server, 'dir'), 'newer-3')
    }
    using _hook = afterCommit(deed)
    const job = await world.restore(server, id, { safetyBackup: false })
    assert.equal(job.status, 'completed', JSON.stringify(job.error))
    const contents = await Promise.all(['a', 'deep/er/b', 'dir/c'].map((path) => text(server, path)))
    assert.deepEqual(contents, ['old-1', 'old-2', 'old-3'])
    const expected = [
      ['/a', 'newer-1'],
      ['/deep/er/b', '(directory)'],
      ['/dir', 'newer-3'],
    ]
    assert.deepEqual(await trashOf(server), expected)
  })

  test('a database that refuses the last write: recorded once it takes it, and not restored again over newer files', async () => {
    const server = await world.server({ a: 'old' })
    const { id } = await world.backup(server)
    await world.write(server, { a: 'new' })
    await refuseRestored(service)
    const { body } = await service.call('POST', `/backups/${server}/${id}/restore`, {
      body: { mode: 'replace', safetyBackup: false },
    })
    await until(async () => (await text(server, 'a')) === 'old')
    // The end was tried at least once.
    const path = `/servers/${server}/jobs/${body.id}`
    await until(async () => (await service.call('GET', path)).body.error?.code === 'internal')
    await writeFile(at(server, 'a'), 'newer')
    assert.equal(await count(server, 'backup.restored'), 0)
    await service.restart()
    // Too late to cancel: it has happened, and is not said to have left the files as they were.
    await service.call('DELETE', path)
    await takeRestored(service)
    const job = await world.jobEnded(server, body.id)
    assert.equal(job.status, 'completed', JSON.stringify(job.error))
    assert.equal(await text(server, 'a'), 'newer')
    assert.equal(await count(server, 'backup.restored'), 1)
    assert.equal(await count(server, 'backup.restore_cancelled'), 0)
    // The agent forgets it once it is told that the end is recorded.
    await until(async () => (await readdir(join(service.dataDir, 'servers', server, 'staging'))).length === 0)
  })
})

/** From now on the database takes no entry that says that something was restored. */
async function refuseRestored(service: TestService): Promise<void> {
  await withDatabase(service, async (db) => {
    if (service.databaseUrl === null) {
      await sql`create trigger refuse before insert on activity when new.event = 'backup.restored'
        begin select raise(abort, 'refused'); end`.execute(db)
      return
    }
    await sql`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$`.execute(
      db,
    )
    await sql`create trigger refuse before insert on activity for each row when (new.event = 'backup.restored')
      execute function refuse()`.execute(db)
  })
}

async function takeRestored(service: TestService): Promise<void> {
  await withDatabase(service, async (db) => {
    await (service.databaseUrl === null ? sql`drop trigger refuse` : sql`drop trigger refuse on activity`).execute(db)
  })
}
