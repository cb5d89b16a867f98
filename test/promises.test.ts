// Promises of the documents that no single part keeps; docs/promises.md names the others.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { onBothEngines } from './support/engines.ts'
import { killLeftovers, spawnService } from './support/process.ts'
import { sendRaw } from './support/raw.ts'
import { refuseEntries, takeEntriesAgain } from './support/refusal.ts'
import { startTestService, type TestService } from './support/service.ts'

const folders: string[] = []
after(() => {
  killLeftovers()
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-promises-'))
  folders.push(folder)
  return folder
}

const MAX_UPLOAD_BYTES = 300_000

onBothEngines('promises', (engine) => {
  let service: TestService
  before(async () => {
    service = await startTestService({ engine, env: { GAMEKEEPER_MAX_UPLOAD_BYTES: String(MAX_UPLOAD_BYTES) } })
  })
  after(() => service.stop())

  test('A database change and its activity entry are one transaction.', async () => {
    const { id } = await service.createServer()
    const minted = await service.mint(['servers:read'])
    const state = async () => {
      const reads = ['/servers', '/tokens', '/activity', `/backups/${id}`]
      const plans = [`/backups/${id}/retention`, `/backups/${id}/schedules`]
      const replies = await Promise.all([...reads, ...plans].map((path) => service.call('GET', path)))
      return replies.map(({ status, text }) => [status, text.replaceAll(/"lastUsedAt":[^,}]*/g, '')])
    }
    const earlier = await state()
    const changes: [string, string, object?][] = [
      ['POST', '/servers', { name: 'Tower' }],
      ['PATCH', `/servers/${id}`, { description: 'Tall' }],
      ['POST', '/tokens', { name: 'x', scopes: ['servers:read'], servers: '*' }],
      ['DELETE', `/tokens/${minted.id}`],
      ['POST', `/backups/${id}`, {}],
      ['PUT', `/backups/${id}/retention`, { keepLast: 1 }],
      ['POST', `/backups/${id}/schedules`, { name: 'Nightly', cron: '0 4 * * *' }],
      ['DELETE', `/servers/${id}`, { name: 'Castle' }],
    ]
    await refuseEntries(service)
    try {
      for (const [method, path, body] of changes)
        assert.equal((await service.call(method, path, body ? { body } : {})).status, 500, `${method} ${path}`)
      assert.deepEqual(await state(), earlier)
    } finally {
      await takeEntriesAgain(service)
    }
    assert.equal((await service.call('GET', '/servers', { token: minted.token })).status, 200)
    for (const [method, path, body] of changes)
      assert.ok((await service.call(method, path, body ? { body } : {})).status < 300, `${method} ${path}`)
  })

  test('A server, token or job that is absent and one that the token may not see answer the same not_found, in every byte but the request id and the time.', async () => {
    const [mine, theirs] = [await service.createServer(), await service.createServer()]
    const { token } = await service.mint(['*'], [mine.id])
    const hidden = await service.mint(['servers:read'])
    const packed = await service.call('POST', `/files/${theirs.id}/pack`, { body: { files: ['none'] } })
    const job = packed.body.id ?? (await service.call('POST', `/backups/${theirs.id}`, { body: {} })).body.jobId
    const answer = async (method: string, path: string, id: string) => {
      const head = `${method} /v1/game${path}/${id} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n\r\n`
      const { status, headers, text } = await sendRaw(service.url, head)
      const shown = [...headers].filter(([name]) => !['date', 'x-request-id', 'ratelimit'].includes(name))
      return JSON.stringify([status, shown, text.replace(headers.get('x-request-id') ?? '', '')]).replaceAll(id, 'ID')
    }
    const never = (id: string) => id.replace(/_.*/, `_${'0'.repeat(26)}`)
    for (const [method, path, id] of [
      ['GET', '/servers', theirs.id],
      ['DELETE', '/tokens', hidden.id],
      ['GET', `/servers/${mine.id}/jobs`, job],
      ['DELETE', `/servers/${mine.id}/jobs`, job],
    ] as const) {
      const seen = await answer(method, path, id)
      assert.match(seen, /^\[404,/)
      assert.equal(seen, await answer(method, path, never(id)), `${method} ${path}`)
    }
    assert.equal((await service.call('GET', '/servers', { token: hidden.token })).status, 200)
  })

  test('Creating a server, and reading the activity of all servers, need a token for all servers.', async () => {
    const { id } = await service.createServer()
    const [narrow, wide] = [await service.mint(['*'], [id]), await service.mint(['servers:write', 'activity:read'])]
    for (const [method, path, body] of [
      ['POST', '/servers', { name: 'Tower' }],
      ['GET', '/activity', undefined],
      ['GET', '/activity/verify', undefined],
    ] as const) {
      const refused = await service.call(method, path, { token: narrow.token, body })
      assert.deepEqual([refused.status, refused.body.code], [403, 'forbidden'], path)
      assert.ok((await service.call(method, path, { token: wide.token, body })).status < 300, path)
    }
  })

  test('If the third of five files is refused (its name, its size, the quota), none of the five appears.', async () => {
    for (const { name, sizeBytes, diskBytes, code } of [
      { name: '../third', sizeBytes: 1, diskBytes: null, code: 'invalid_path' },
      { name: 'third', sizeBytes: MAX_UPLOAD_BYTES + 1, diskBytes: null, code: 'too_large' },
      { name: 'third', sizeBytes: 200_000, diskBytes: 400_000, code: 'quota_exceeded' },
    ]) {
      const { id } = await service.createServer({ limits: { diskBytes } })
      const { url } = (await service.call('GET', `/files/${id}/upload`)).body
      const form = new FormData()
      const append = (file: string, bytes: number) => form.append('files', new Blob([randomBytes(bytes)]), file)
      for (const file of ['first', 'deep/second']) append(file, 100_000)
      append(name, sizeBytes)
      for (const file of ['fourth', 'fifth']) append(file, 10_000)
      const refused = await fetch(url, { method: 'POST', body: form })
      assert.equal(((await refused.json()) as { code: string }).code, code)
      const root = join(service.dataDir, 'servers', id)
      assert.deepEqual([readdirSync(join(root, 'files')), readdirSync(join(root, 'staging'))], [[], []])
    }
  })
})

test('Every write goes to a temporary file, which is synced and renamed, and the directory is synced.', async () => {
  const dataDir = newFolder()
  const [trace, token] = [join(dataDir, 'trace'), `gk_admin_${randomBytes(32).toString('hex')}`]
  const env = { GAMEKEEPER_DATA_DIR: dataDir, GAMEKEEPER_ADMIN_TOKEN: token, TRACE_FILES_TO: trace }
  const service = await spawnService(env, { preload: new URL('support/trace-files.ts', import.meta.url).href })
  const headers = { authorization: `Bearer ${token}` }
  const created = await fetch(`${service.url}/v1/game/servers`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: '{"name": "Castle"}',
  })
  const { id } = (await created.json()) as { id: string }
  const root = join(dataDir, 'servers', id)
  const { url: link } = (await (await fetch(`${service.url}/v1/game/files/${id}/upload`, { headers })).json()) as {
    url: string
  }
  const form = (content: string) => {
    const body = new FormData()
    body.append('files', new Blob([content]), 'level.dat')
    return { method: 'POST', body }
  }
  const put = (content: string) =>
    fetch(`${service.url}/v1/game/files/${id}/content?path=/level.dat`, { method: 'PUT', headers, body: content })
  for (const send of [() => put('one'), () => put('two'), () => fetch(link, form('three'))]) {
    writeFileSync(trace, '')
    assert.ok((await send()).ok)
    // Until the answer, and nothing after it.
    const calls = readFileSync(trace, 'utf8').trim().split('\n')
    const at = (what: string, from = 0) => {
      const index = calls.findIndex((call, place) => place >= from && call.startsWith(what))
      assert.ok(index >= 0, `no ${what} in:\n${calls.join('\n')}`)
      return index
    }
    const content = at(`sync ${join(root, 'staging')}/`)
    const journal = at(`sync ${join(dataDir, 'journal')}/`)
    const placed = at(`place ${join(root, 'files/level.dat')}`)
    assert.ok(content < placed && journal < placed, calls.join('\n'))
    at(`sync ${join(root, 'files')}`, placed)
    if (calls.some((call) => call.startsWith(`place ${join(root, 'trash')}/`)))
      assert.ok(at(`place ${join(root, 'trash')}/`) < placed)
  }
  assert.equal(readdirSync(join(root, 'trash')).length, 2)
  await service.kill('SIGTERM')
})

test('each start sets the mode of the data directory to 0700, and of the database, the secret and the other files in it to 0600', async () => {
  const parent = newFolder()
  const [made, open] = [join(parent, 'made'), join(parent, 'open')]
  mkdirSync(open)
  chmodSync(open, 0o750)
  for (const [dataDir, mode] of [
    [made, 0o700],
    [open, 0o700],
  ] as const) {
    const service = await spawnService({ GAMEKEEPER_DATA_DIR: dataDir })
    assert.equal(statSync(dataDir).mode & 0o777, mode, dataDir)
    for (const name of ['secret.key', 'journal', 'backups']) assert.equal(statSync(join(dataDir, name)).mode & 0o077, 0)
    assert.equal(await service.kill('SIGTERM'), 0)
  }
})
