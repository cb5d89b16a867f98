// Small doors, each closed: what a stranger could make us keep, or find out, or could read beside us.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { CURSOR_MAX_CHARS } from '../src/contract/schema.ts'
import { createCursors } from '../src/control/http/paging.ts'
import { startTestService } from './support/service.ts'
import { until } from './support/until.ts'

test('A list accepts every cursor it has issued, however long the names are.', async () => {
  await using service = await startTestService()
  const { id } = await service.createServer()
  const folder = Buffer.from(join(service.dataDir, 'servers', id, 'files'))
  // What a game may leave on disk, and what takes the most characters in JSON: not UTF-8, control characters.
  for (const fill of [0xff, 0x80, 0x01, 0x22, 0x78])
    writeFileSync(Buffer.concat([folder, Buffer.from('/'), Buffer.alloc(255, fill)]), '')
  const seen: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const at: string = cursor === '' ? '' : `&cursor=${cursor}`
    const page = await service.call('GET', `/files/${id}?limit=1${at}`)
    assert.equal(page.status, 200, page.text)
    seen.push(page.body.data[0].name)
    cursor = page.body.nextCursor
  }
  assert.equal(new Set(seen).size, 5)
})

test('any cursor over a path of 4,096 bytes fits its schema and is read back', () => {
  const cursors = createCursors(Buffer.alloc(32, 1))
  const escaped = fc.integer({ min: 0x80, max: 0xff }).map((byte) => String.fromCodePoint(0x10fe00 + byte))
  const control = fc.integer({ min: 1, max: 31 }).map((code) => String.fromCharCode(code))
  const unit = fc.oneof(escaped, control, fc.constantFrom('"', '\\', '/', 'é'))
  const path = fc.oneof(...[unit, escaped, control].map((each) => fc.array(each, { minLength: 4096, maxLength: 4096 })))
  fc.assert(
    fc.property(path, (units) => {
      const key = [1, String(Number.MAX_SAFE_INTEGER), units.join('')]
      const cursor = cursors.encode('list', key)
      assert.ok(cursor.length <= CURSOR_MAX_CHARS, String(cursor.length))
      assert.deepEqual(cursors.decode('list', cursor), key)
    }),
    { numRuns: 20 },
  )
})

test('Request limits use a monotonic clock.', async (t) => {
  await using service = await startTestService({ env: { GAMEKEEPER_RATE_LIMIT: '3' } })
  const { token } = await service.mint(['servers:read'])
  for (let i = 0; i < 3; i++) assert.equal((await service.call('GET', '/servers', { token })).status, 200)
  const { now } = Date
  for (const offsetMs of [2 * 3600_000, -2 * 3600_000]) {
    t.mock.method(Date, 'now', () => now() + offsetMs)
    const refused = await service.call('GET', '/servers', { token })
    assert.equal(refused.status, 429)
    assert.ok(Number(refused.headers.get('retry-after')) <= 60)
    t.mock.restoreAll()
  }
})

test('Of such refusals within a minute, the first gets its own entry, and the rest share one with their count.', async () => {
  await using service = await startTestService()
  const { id } = await service.createServer()
  const { token } = await service.mint(['files:read'], [id])
  for (let i = 0; i < 30; i++) assert.equal((await service.call('GET', `/backups/${id}`, { token })).status, 403)
  await service.call('GET', `/servers/${id}`, { token })
  const denied = async () => (await service.call('GET', `/servers/${id}/activity?event=access.denied`)).body.data
  const scopesOf = (entries: { properties: { scope: string; count?: number } }[]) =>
    entries.map(({ properties }) => `${properties.scope} ${properties.count ?? 1}`).sort()
  assert.deepEqual(scopesOf(await denied()), ['backups:read 1', 'servers:read 1'])
  await service.restart()
  assert.deepEqual(scopesOf(await denied()), ['backups:read 1', 'backups:read 29', 'servers:read 1'])
  assert.equal((await service.call('GET', `/servers/${id}/activity/verify`)).body.intact, true)
})

test('a User-Agent is cut to 512 characters, also of whoever comes by a link', async () => {
  await using service = await startTestService()
  const { id } = await service.createServer()
  const headers = { 'user-agent': 'x'.repeat(9000) }
  await service.call('PATCH', `/servers/${id}`, { body: { name: 'y' }, headers })
  const { url } = (await service.call('GET', `/files/${id}/upload`)).body
  const form = new FormData()
  form.append('files', new Blob(['x']), 'a.txt')
  assert.equal((await fetch(url, { method: 'POST', body: form, headers })).status, 200)
  const entries = await until(async () => {
    const { data } = (await service.call('GET', `/servers/${id}/activity`)).body
    return data.some(({ event }: { event: string }) => event === 'file.uploaded') && data
  })
  for (const { userAgent } of entries) assert.ok((userAgent ?? '').length <= 512)
})

test('the database and what SQLite keeps beside it are private, also a copy of it, and after they were opened', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-modes-'))
  await using service = await startTestService({ env: { GAMEKEEPER_DATA_DIR: dataDir } })
  const modeOf = (name: string) => (statSync(join(dataDir, name)).mode & 0o777).toString(8)
  const files = ['gamekeeper.db', 'gamekeeper.db-wal', 'gamekeeper.db-shm', 'secret.key']
  assert.deepEqual(files.map(modeOf), ['600', '600', '600', '600'])
  await service.halt()
  chmodSync(dataDir, 0o755)
  for (const name of ['gamekeeper.db', 'secret.key']) chmodSync(join(dataDir, name), 0o644)
  writeFileSync(join(dataDir, 'gamekeeper.db.bak'), 'a copy', { mode: 0o666 })
  mkdirSync(join(dataDir, 'other'), { mode: 0o755 })
  await service.restart()
  assert.deepEqual([modeOf(''), modeOf('gamekeeper.db.bak')], ['700', '600'])
  assert.deepEqual(files.map(modeOf), ['600', '600', '600', '600'])
})

test('An unknown name and one that leads inside get the same response.', async () => {
  await using service = await startTestService()
  const { id } = await service.createServer()
  const errorOf = async (url: string) => {
    const { body } = await service.call('POST', `/files/${id}/pull`, { body: { url } })
    return until(async () => (await service.call('GET', `/servers/${id}/jobs/${body.id}`)).body.error)
  }
  const inside = await errorOf('http://localhost/')
  assert.deepEqual(await errorOf('http://no-such-host.invalid/'), inside)
  assert.deepEqual(await errorOf('http://10.0.0.1/'), inside)
  assert.equal(inside.code, 'invalid_url')
})

test('the patterns of the OpenAPI document mean the same to Python, and use nothing that RE2 lacks', async () => {
  await using service = await startTestService()
  const document = (await service.call('GET', '/v1/game/openapi.json')).body
  const patterns = [...new Set(patternsIn(document))]
  assert.ok(patterns.length > 5)
  for (const pattern of patterns) assert.doesNotMatch(pattern, /\(\?[=!<]|\\[pPuU]|\\[1-9]|\[\^\]/, pattern)
  const samples = [
    ...[
      '',
      ' ',
      'a',
      ' a ',
      '\u00a0',
      'a\u00a0b',
      'é',
      '😀',
      'a\tb',
      'a\nb',
      '\u0000',
      'a\u007f',
      'a\u0085b',
      'a\u2028b',
    ],
    ...['\ufeff', '\u3000x', 'srv_1', 'backup.*', 'a'.repeat(300), '\u{10ffff}', '\u{10fe80}x', 'owner/team.a', '-a'],
  ]
  const program =
    'import json,re,sys\np,s=json.load(sys.stdin)\nprint(json.dumps([[bool(re.search(x,y)) for y in s] for x in p]))'
  const answer = execFileSync('python3', ['-c', program], { input: JSON.stringify([patterns, samples]) })
  const ours = patterns.map((pattern) => samples.map((sample) => new RegExp(pattern, 'u').test(sample)))
  assert.deepEqual(JSON.parse(answer.toString()), ours)
})

test('OpenAPI lists 405 and 431 for every operation', async () => {
  await using service = await startTestService()
  const { paths } = (await service.call('GET', '/v1/game/openapi.json')).body
  for (const [path, operations] of Object.entries(paths as Record<string, Record<string, { responses?: object }>>)) {
    if (!path.startsWith('/v1/game/')) continue
    for (const [method, { responses = {} }] of Object.entries(operations))
      assert.ok('405' in responses && '431' in responses, `${method} ${path}`)
  }
})

function patternsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) =>
    name === 'pattern' && typeof inner === 'string'
      ? [inner]
      : name === 'patternProperties'
        ? [...Object.keys(inner), ...patternsIn(inner)]
        : patternsIn(inner),
  )
}
