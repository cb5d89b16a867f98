// "A change of a server's files and its activity entry": every change that was made has its entry, once, whatever the
// database, the clock or a kill does in between.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, type TestContext, test } from 'node:test'
import { freshDatabase, onBothEngines } from './support/engines.ts'
import { killLeftovers, spawnService } from './support/process.ts'
import { refuseEntries, takeEntriesAgain } from './support/refusal.ts'
import { startTestService, type TestService } from './support/service.ts'
import { until } from './support/until.ts'

after(killLeftovers)

const CLIENTS = 4
const WRITES = 75

interface Entry {
  id: string
  event: string
  properties: Record<string, unknown>
  source: string
  actor: { name: string }
}

onBothEngines('changes', (engine) => {
  let service: TestService
  let serverId: string
  let dir: string
  before(async () => {
    service = await startTestService({ engine })
  })
  after(() => service.stop())
  beforeEach(async () => {
    serverId = (await service.createServer()).id
    dir = join(service.dataDir, 'servers', serverId, 'files')
  })

  const at = (rest = '') => `/files/${serverId}${rest}`

  async function entries(event: string): Promise<Entry[]> {
    const all: Entry[] = []
    let cursor = ''
    do {
      const path = `/servers/${serverId}/activity?event=${event}&limit=100${cursor && `&cursor=${cursor}`}`
      const { body } = await service.call('GET', path)
      all.push(...body.data)
      cursor = body.nextCursor ?? ''
    } while (cursor)
    return all
  }

  test(`every answered write has exactly one entry: ${CLIENTS} clients, ${WRITES} writes each`, async () => {
    const write = (name: string) => service.call('PUT', at(`/content?path=/${name}`), { body: name })
    const client = async (number: number) => {
      for (let index = 0; index < WRITES; index++) assert.equal((await write(`${number}-${index}`)).status, 201)
    }
    await Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)))
    const expected = Array.from({ length: CLIENTS * WRITES }, (_, i) => `/${i % CLIENTS}-${Math.floor(i / CLIENTS)}`)
    const last = (await service.call('PUT', at('/content?path=/last'), { body: 'x' })).body.path
    await until(async () => (await entries('file.written')).some(({ properties }) => properties.path === last))
    const told = (await entries('file.written')).map(({ properties }) => properties.path)
    assert.deepEqual(told.toSorted(), [...expected, last].toSorted())
  })

  const CHANGES: Record<string, { event: string; send: () => [string, string, object?]; isDone: () => boolean }> = {
    'a move': {
      event: 'file.moved',
      send: () => ['POST', '/move', { moves: [{ from: '/a', to: '/moved' }] }],
      isDone: () => existsSync(join(dir, 'moved')) && !existsSync(join(dir, 'a')),
    },
    'a new mode': {
      event: 'file.mode_changed',
      send: () => ['POST', '/mode', { files: ['a'], mode: '0600' }],
      isDone: () => (statSync(join(dir, 'a')).mode & 0o777) === 0o600,
    },
    'an emptied trash': {
      event: 'file.trash_emptied',
      send: () => ['DELETE', '/trash'],
      isDone: () => readdirSync(join(dir, '../trash')).length === 0,
    },
    'a new folder': {
      event: 'file.folder_created',
      send: () => ['POST', '/folder', { name: 'deep', path: '/new' }],
      isDone: () => existsSync(join(dir, 'new/deep')),
    },
    'a deletion': {
      event: 'file.deleted',
      send: () => ['DELETE', '', { files: ['a'] }],
      isDone: () => !existsSync(join(dir, 'a')),
    },
  }

  for (const [name, { event, send, isDone }] of Object.entries(CHANGES)) {
    test(`the database refuses the entry of ${name}: it is answered as done, and has one entry later`, async () => {
      for (const file of ['a', 'trashed']) writeFileSync(join(dir, file), file)
      await service.call('DELETE', at(), { body: { files: ['trashed'] } })
      const earlier = (await entries(event)).length
      const [method, path, body] = send()
      await refuseEntries(service)
      try {
        const answer = await service.call(method, at(path), body ? { body } : {})
        assert.ok(answer.status < 300, answer.text)
        assert.ok(isDone())
        assert.equal((await entries(event)).length, earlier)
      } finally {
        await takeEntriesAgain(service)
      }
      await until(async () => (await entries(event)).length > earlier)
      await service.restart()
      const told = await entries(event)
      assert.equal(told.length, earlier + 1)
      assert.equal(told[0]?.source, 'api')
      assert.equal((await service.call('GET', `/servers/${serverId}/activity/verify`)).body.intact, true)
    })
  }

  test('an upload by tus that is finished again after a crash has one entry', async () => {
    const { url } = (await service.call('GET', at('/upload'))).body
    const tus = { 'tus-resumable': '1.0.0' }
    const metadata = `filename ${Buffer.from('world.zip').toString('base64')}`
    const created = await fetch(url, {
      method: 'POST',
      headers: { ...tus, 'upload-length': '4', 'upload-metadata': metadata },
    })
    const address = new URL(created.headers.get('location') ?? '', url)
    const headers = { ...tus, 'upload-offset': '0', 'content-type': 'application/offset+octet-stream' }
    assert.equal((await fetch(address, { method: 'PATCH', headers, body: 'full' })).status, 204)
    await until(async () => (await entries('file.uploaded')).length === 1)
    await service.halt()
    // As the disk is when the process dies after the fact and before the record says that it is finished.
    const name = `${address.pathname.split('/').at(-1)}.json`
    renameSync(join(dir, '../staging', `done-${name}`), join(dir, '../staging', `part-${name}`))
    await service.restart()
    await service.call('PUT', at('/content?path=/later'), { body: 'x' })
    await until(async () => (await entries('file.written')).length === 1)
    assert.equal((await entries('file.uploaded')).length, 1)
  })

  test('a copy whose answer could not be kept is not made again for the same key, before a restart and after', async () => {
    writeFileSync(join(dir, 'a'), 'A')
    const headers = { 'idempotency-key': `copy ${engine}`.replace(' ', '-') }
    const copy = (location = '/a') => service.call('POST', at('/copy'), { body: { location }, headers })
    await refuseEntries(service)
    const [first, again] = [await copy(), await copy()]
    assert.deepEqual([first.status, again.status], [201, 201], first.text)
    assert.equal(again.text, first.text)
    assert.equal((await copy('/elsewhere')).body.code, 'idempotency_conflict')
    await service.halt()
    await takeEntriesAgain(service)
    await service.restart()
    const later = await copy()
    assert.equal(later.text, first.text)
    assert.equal(later.headers.get('idempotency-replayed'), 'true')
    assert.deepEqual(readdirSync(dir).toSorted(), ['a', 'a copy'])
    assert.equal((await entries('file.copied')).length, 1)
  })
})

async function dataDir(t: TestContext): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-changes-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function clientOf(url: string, token: string) {
  return async (method: string, path: string, body?: string | object, headers: Record<string, string> = {}) => {
    const json = typeof body === 'object'
    const response = await fetch(`${url}/v1/game${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(json ? { 'content-type': 'application/json' } : {}),
        ...headers,
      },
      ...(body === undefined ? {} : { body: json ? JSON.stringify(body) : body }),
    })
    return { status: response.status, body: await response.json() }
  }
}

onBothEngines('Every change is recorded exactly once, even across a crash.', (engine) => {
  test("A change to a server's files is in the agent's journal before the disk is touched, and gets exactly one entry: at once, or when the database accepts entries again.", async (t) => {
    const [folder, token] = [await dataDir(t), `gk_admin_${randomBytes(32).toString('hex')}`]
    const databaseUrl = await freshDatabase(engine)
    const database = { dataDir: folder, databaseUrl }
    const env = {
      GAMEKEEPER_DATA_DIR: folder,
      GAMEKEEPER_ADMIN_TOKEN: token,
      ...(databaseUrl ? { GAMEKEEPER_DATABASE_URL: databaseUrl } : {}),
    }
    const first = await spawnService(env)
    let call = clientOf(first.url, token)
    const { id } = (await call('POST', '/servers', { name: 'Castle' })).body
    const files = join(folder, 'servers', id, 'files')
    writeFileSync(join(files, 'a'), 'A')
    await refuseEntries(database)
    const copy = () => call('POST', `/files/${id}/copy`, { location: '/a' }, { 'idempotency-key': 'copy' })
    const answer = await copy()
    await call('POST', `/files/${id}/folder`, { name: 'made' })
    await call('PUT', `/files/${id}/content?path=/put`, 'bytes')
    await first.kill('SIGKILL')
    await takeEntriesAgain(database)

    const second = await spawnService(env)
    call = clientOf(second.url, token)
    const again = await copy()
    assert.deepEqual(again, answer)
    assert.deepEqual(readdirSync(files).toSorted(), ['a', 'a copy', 'made', 'put'])
    const events = (await call('GET', `/servers/${id}/activity?event=file.*`)).body.data.map(
      (entry: Entry) => entry.event,
    )
    assert.deepEqual(events.toSorted(), ['file.copied', 'file.folder_created', 'file.written'])
    await second.kill('SIGTERM')
  })
})

test('a clock that steps back over a restart loses no entry', async (t) => {
  const [folder, token] = [await dataDir(t), `gk_admin_${randomBytes(32).toString('hex')}`]
  const env = { GAMEKEEPER_DATA_DIR: folder, GAMEKEEPER_ADMIN_TOKEN: token }
  const first = await spawnService(env)
  let call = clientOf(first.url, token)
  const { id } = (await call('POST', '/servers', { name: 'Castle' })).body
  const written = async () =>
    (await call('GET', `/servers/${id}/activity?event=file.written`)).body.data.map(
      (entry: Entry) => entry.properties.path,
    )
  await call('PUT', `/files/${id}/content?path=/before`, 'x')
  await until(async () => (await written()).length === 1)
  await first.kill('SIGTERM')
  const anHourBack = 'data:text/javascript,const%20now=Date.now;Date.now=()=>now()-3600000'
  const second = await spawnService({ ...env, NODE_OPTIONS: `--import=${anHourBack}` })
  call = clientOf(second.url, token)
  await call('PUT', `/files/${id}/content?path=/after`, 'x')
  await until(async () => (await written()).length === 2)
  assert.deepEqual(await written(), ['/after', '/before'])
  await second.kill('SIGTERM')
})
