import assert from 'node:assert/strict'
import { chmod, lstat, mkdir, readdir, readFile, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { onBothEngines } from '../../../test/support/engines.ts'
import { send } from '../../../test/support/send.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { until } from '../../../test/support/until.ts'

onBothEngines('files', (engine) => {
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
  const entries = async () => (await service.call('GET', `/servers/${serverId}/activity`)).body.data
  const latest = async () => (await entries())[0]

  test('delete: names what is gone and what was missing, and can be undone', async () => {
    await mkdir(join(dir, 'world'))
    await writeFile(join(dir, 'world/level.dat'), 'seed')
    const deleted = await service.call('DELETE', at(), { body: { root: '/world', files: ['level.dat', 'nothing'] } })
    assert.equal(deleted.status, 200)
    assert.deepEqual(deleted.body, { deleted: ['level.dat'], missing: ['nothing'] })
    assert.deepEqual(await readdir(join(dir, 'world')), [])
    const told = await latest()
    assert.equal(told.event, 'file.deleted')
    assert.deepEqual(told.properties, { root: '/world', files: ['level.dat'], count: 1 })
    const trash = await service.call('GET', at('/trash'))
    assert.equal(trash.body.data[0].path, '/world/level.dat')
    const restored = await service.call('POST', at(`/trash/${trash.body.data[0].id}/restore`))
    assert.equal(restored.status, 200)
    assert.equal(await readFile(join(dir, 'world/level.dat'), 'utf8'), 'seed')
    assert.equal((await latest()).event, 'file.restored')
  })

  test('delete: one bad entry and nothing is touched, nothing is told', async () => {
    await writeFile(join(dir, 'keep.txt'), 'x')
    for (const bad of ['', '.', '..', '../x', 'a/../../x', '/', './/', '/../x', 'a\0b', '%2e%2e/x']) {
      const reply = await service.call('DELETE', at(), { body: { files: ['keep.txt', bad] } })
      assert.equal(reply.status, 400, JSON.stringify(bad))
      assert.equal(reply.body.code, 'invalid_path', JSON.stringify(bad))
    }
    assert.deepEqual(await readdir(dir), ['keep.txt'])
    assert.equal((await latest()).event, 'server.created')
  })

  test('delete: the schema holds the number of entries', async () => {
    assert.equal((await service.call('DELETE', at(), { body: { files: [] } })).body.code, 'invalid_request')
    const many = Array.from({ length: 1001 }, (_, i) => `f${i}`)
    assert.equal((await service.call('DELETE', at(), { body: { files: many } })).body.code, 'invalid_request')
  })

  test('delete: a symlink goes, what it points to stays', async () => {
    await writeFile(join(dir, 'target.txt'), 'x')
    await symlink('target.txt', join(dir, 'link'))
    await service.call('DELETE', at(), { body: { files: ['link'] } })
    assert.deepEqual(await readdir(dir), ['target.txt'])
  })

  test('folder: 201 with parents, 200 when it is there, already_exists for a file', async () => {
    const made = await service.call('POST', at('/folder'), { body: { name: 'deep', path: '/a/b' } })
    assert.equal(made.status, 201)
    assert.equal(made.body.path, '/a/b/deep')
    assert.equal(made.body.kind, 'directory')
    assert.equal((await service.call('POST', at('/folder'), { body: { name: 'deep', path: '/a/b' } })).status, 200)
    await writeFile(join(dir, 'file'), '')
    const taken = await service.call('POST', at('/folder'), { body: { name: 'file' } })
    assert.equal(taken.body.code, 'already_exists')
    for (const name of ['a/b', '..', 'x'.repeat(256), 'trailing.']) {
      assert.equal((await service.call('POST', at('/folder'), { body: { name } })).status, 400, name)
    }
  })

  test('folder: a retry with the same key gives the same answer', async () => {
    const send = () =>
      service.call('POST', at('/folder'), { body: { name: 'once' }, headers: { 'idempotency-key': 'k' } })
    assert.equal((await send()).status, 201)
    const again = await send()
    assert.equal(again.status, 201)
    assert.equal(again.headers.get('idempotency-replayed'), 'true')
  })

  test('copy: names as people know them, two at once get two names', async () => {
    await writeFile(join(dir, 'a.txt'), 'one')
    await writeFile(join(dir, 'w.tar.gz'), 'two')
    await writeFile(join(dir, '.env'), 'three')
    const copy = async (location: string) => (await service.call('POST', at('/copy'), { body: { location } })).body.path
    assert.equal(await copy('/a.txt'), '/a copy.txt')
    const pair = await Promise.all([copy('/a.txt'), copy('/a.txt')])
    assert.deepEqual(pair.sort(), ['/a copy 2.txt', '/a copy 3.txt'])
    assert.equal(await copy('w.tar.gz'), '/w copy.tar.gz')
    assert.equal(await copy('/.env'), '/.env copy')
    assert.equal(await readFile(join(dir, 'a copy 3.txt'), 'utf8'), 'one')
    const missing = await service.call('POST', at('/copy'), { body: { location: '/nope' } })
    assert.equal(missing.body.code, 'not_found')
  })

  test('copy: refused before it starts when the quota does not allow it', async () => {
    await writeFile(join(dir, 'big'), Buffer.alloc(64 * 1024))
    await service.call('PATCH', `/servers/${serverId}`, { body: { limits: { diskBytes: 100_000 } } })
    const reply = await service.call('POST', at('/copy'), { body: { location: '/big' } })
    assert.equal(reply.body.code, 'quota_exceeded')
    assert.deepEqual(await readdir(dir), ['big'])
  })

  test('upload: a signed place, for this server, for fifteen minutes', async () => {
    const reply = await service.call('GET', at('/upload'))
    assert.equal(reply.status, 200)
    assert.match(reply.body.id, /^upl_/)
    assert.deepEqual(reply.body.protocols, ['multipart', 'tus'])
    const minutes = (Date.parse(reply.body.expiresAt) - Date.now()) / 60_000
    assert.ok(minutes > 14 && minutes <= 15, String(minutes))
  })

  test('list: pages through a directory, directories first', async () => {
    await mkdir(join(dir, 'zoo'))
    for (let i = 0; i < 12; i++) await writeFile(join(dir, `f${String(i).padStart(2, '0')}.txt`), 'x'.repeat(i))
    const seen: string[] = []
    let cursor = ''
    do {
      const page = await service.call('GET', at(`?limit=5${cursor}`))
      seen.push(...page.body.data.map((entry: { name: string }) => entry.name))
      cursor = page.body.nextCursor ? `&cursor=${page.body.nextCursor}` : ''
    } while (cursor)
    assert.equal(seen[0], 'zoo')
    assert.equal(seen.length, 13)
    assert.deepEqual(seen.slice(1), seen.slice(1).toSorted())
    const bySize = await service.call('GET', at('?sort=size&order=desc&limit=2'))
    assert.deepEqual(
      bySize.body.data.map((entry: { name: string }) => entry.name),
      ['zoo', 'f11.txt'],
    )
    const other = await service.call(
      'GET',
      at(`?path=/zoo&cursor=${(await service.call('GET', at('?limit=5'))).body.nextCursor}`),
    )
    assert.equal(other.body.code, 'invalid_request')
  })

  test('move: all or nothing, refuses to overwrite unless told', async () => {
    await writeFile(join(dir, 'a'), 'A')
    await writeFile(join(dir, 'b'), 'B')
    const refused = await service.call('POST', at('/move'), { body: { moves: [{ from: '/a', to: '/b' }] } })
    assert.equal(refused.body.code, 'already_exists')
    const moved = await service.call('POST', at('/move'), {
      body: { moves: [{ from: '/a', to: '/b' }], overwrite: true },
    })
    assert.equal(moved.body.data[0].path, '/b')
    assert.equal(await readFile(join(dir, 'b'), 'utf8'), 'A')
    assert.equal((await service.call('GET', at('/trash'))).body.data[0].reason, 'replaced')
  })

  test('mode: files and folders, told once however often it is asked for', async () => {
    await mkdir(join(dir, 'world'), { mode: 0o755 })
    await writeFile(join(dir, 'world/run.sh'), '#!/bin/sh')
    const send = (mode: string, key: string) =>
      service.call('POST', at('/mode'), {
        body: { root: '/world', files: ['run.sh'], mode },
        headers: { 'idempotency-key': key },
      })
    const changed = await send('755', 'first')
    assert.equal(changed.status, 200)
    assert.deepEqual(changed.body.data, (await service.call('GET', at('?path=/world'))).body.data)
    assert.equal(changed.body.data[0].mode, '0755')
    assert.equal((await send('0755', 'second')).status, 200)
    await service.call('POST', at('/mode'), { body: { files: ['world'], mode: '0700' } })
    await chmod(join(dir, 'world/run.sh'), 0o600)
    const replayed = await send('755', 'first')
    assert.deepEqual([replayed.text, replayed.headers.get('idempotency-replayed')], [changed.text, 'true'])
    assert.equal((await lstat(join(dir, 'world/run.sh'))).mode & 0o7777, 0o600)
    assert.equal((await send('700', 'first')).body.code, 'idempotency_conflict')
    const told = (await entries()).filter(({ event }: { event: string }) => event === 'file.mode_changed')
    assert.deepEqual(
      told.map(({ properties }: { properties: object }) => properties),
      [
        { paths: ['/world'], count: 1, mode: '0700' },
        { paths: ['/world/run.sh'], count: 1, mode: '0755' },
      ],
    )
  })

  test('mode: one bad entry or a mode of more than the nine bits, and nothing is touched, nothing is told', async () => {
    await writeFile(join(dir, 'keep.txt'), 'x')
    await symlink('keep.txt', join(dir, 'link'))
    const send = async (body: object) => (await service.call('POST', at('/mode'), { body })).body
    for (const mode of ['4755', '2755', '1777', '7777', '00755', '75', '789', 'u+x', '', '-755', '0o755', 755, null])
      assert.equal((await send({ files: ['keep.txt'], mode })).code, 'invalid_request', JSON.stringify(mode))
    for (const files of [[], Array.from({ length: 1001 }, () => 'keep.txt')])
      assert.equal((await send({ files, mode: '600' })).code, 'invalid_request')
    for (const bad of ['', '.', '../x', '/', 'link', 'link/x', '%2e%2e/x'])
      assert.equal((await send({ files: ['keep.txt', bad], mode: '600' })).code, 'invalid_path', JSON.stringify(bad))
    assert.equal((await send({ files: ['keep.txt', 'nothing'], mode: '600' })).code, 'not_found')
    const { code, detail } = await send({ files: ['keep.txt'], mode: '0444' })
    assert.equal(code, 'invalid_request')
    assert.equal(detail, 'The owner of a file keeps read and write: "/keep.txt" cannot be given this mode.')
    assert.equal((await lstat(join(dir, 'keep.txt'))).mode & 0o7777, 0o644)
    assert.equal((await latest()).event, 'server.created')
  })

  test('pack, unpack, pull: a bad path, name or URL is refused at once, and nothing is queued or recorded', async () => {
    const url = 'https://example.com/x'
    const refused: [what: string, body: object, code: string][] = [
      ...['..', '', '/', '../x', 'a\0b', '%2e%2e/x', `${'x'.repeat(256)}`].map((bad): [string, object, string] => [
        'pack',
        { files: ['world', bad] },
        'invalid_path',
      ]),
      ['pack', { root: '/..', files: ['world'] }, 'invalid_path'],
      ...['/../x.zip', '/', '/dot.', '/a\\b'].map((target): [string, object, string] => [
        'pack',
        { files: ['world'], target },
        'invalid_path',
      ]),
      ...['/../x.zip', '/', 'd/'.repeat(200)].map((path): [string, object, string] => [
        'unpack',
        { path },
        'invalid_path',
      ]),
      ['unpack', { path: '/x.zip', directory: '/a/..' }, 'invalid_path'],
      ...['../y', '..', 'a/b', 'dot.'].map((name): [string, object, string] => ['pull', { url, name }, 'invalid_path']),
      ['pull', { url, directory: '/../x' }, 'invalid_path'],
      ['pull', { url, directory: 'd/'.repeat(128), name: 'x' }, 'invalid_path'],
      ...['file:///etc/passwd', 'nonsense', 'ftp://example.com/x', 'https://me:secret@example.com/x'].map(
        (bad): [string, object, string] => ['pull', { url: bad }, 'invalid_url'],
      ),
    ]
    for (const [index, [what, body, code]] of refused.entries()) {
      const headers = { 'idempotency-key': `${serverId}-${index}` }
      const reply = await service.call('POST', at(`/${what}`), { body, headers })
      assert.deepEqual([reply.status, reply.body.code], [400, code], `${what} ${JSON.stringify(body)}: ${reply.text}`)
      const other = await service.call('POST', at('/folder'), { body: { name: `free-${index}` }, headers })
      assert.equal(other.status, 201, 'the key is free')
    }
    assert.deepEqual((await service.call('GET', `/servers/${serverId}/jobs`)).body.data, [])
    const events = (await service.call('GET', `/servers/${serverId}/activity?event=job.*`)).body.data
    assert.deepEqual(events, [])
  })

  test('content: an entry says by which means it was written, as for any other change', async () => {
    const authorization = `Bearer ${service.adminToken}`
    for (const source of ['api', 'panel', 'cli'] as const) {
      const headers = { authorization, ...(source === 'api' ? {} : { 'x-gamekeeper-client': source }) }
      const put = await fetch(`${service.url}/v1/game${at('/content?path=/motd.txt')}`, {
        method: 'PUT',
        headers: { ...headers, 'content-type': 'application/octet-stream' },
        body: source,
      })
      const copied = await service.call('POST', at('/copy'), { headers, body: { location: '/motd.txt' } })
      const sources = await until(async () => {
        const found = await entries()
        const of = (reply: { headers: Headers }) =>
          found.find(({ requestId }: { requestId: string }) => requestId === reply.headers.get('x-request-id'))?.source
        return of(put) && { written: of(put), copied: of(copied) }
      })
      assert.deepEqual(sources, { written: source, copied: source })
    }
    const { url } = (await service.call('GET', at('/upload'))).body
    const form = new FormData()
    form.append('files', new Blob(['x']), 'uploaded.txt')
    assert.equal((await fetch(url, { method: 'POST', body: form })).status, 200)
    const uploaded = await until(async () =>
      (await entries()).find(({ event }: { event: string }) => event === 'file.uploaded'),
    )
    assert.equal(uploaded.source, 'link')
  })

  test('content: a part of a file is never taken for all of it', async () => {
    await writeFile(join(dir, 'whole.txt'), 'whole')
    const headers = { 'content-range': 'bytes 0-3/8', 'content-type': 'application/octet-stream' }
    const reply = await send(service, 'PUT', `/v1/game${at('/content')}?path=/whole.txt`, { headers, body: 'half' })
    assert.deepEqual([reply.status, reply.body.code], [400, 'invalid_request'])
    assert.equal(await readFile(join(dir, 'whole.txt'), 'utf8'), 'whole')
  })

  test('content: a file that was changed since a time, or has another tag, is not replaced', async () => {
    const path = join(dir, 'since.txt')
    await writeFile(path, 'old')
    const at2026 = (second: string) => `Thu, 19 Nov 2026 10:00:0${second} GMT`
    await utimes(path, new Date(), new Date('2026-11-19T10:00:01.9Z'))
    const { headers } = await send(service, 'GET', `/v1/game${at('/content')}?path=/since.txt`)
    const etag = headers.get('etag') ?? ''
    const put = async (conditions: Record<string, string>, name = 'since.txt') => {
      const headers = { ...conditions, 'content-type': 'application/octet-stream' }
      return (await send(service, 'PUT', `/v1/game${at('/content')}?path=/${name}`, { headers, body: 'new' })).status
    }
    assert.equal(await put({ 'if-unmodified-since': at2026('0') }), 412)
    assert.equal(await put({ 'if-match': `W/${etag}` }), 412)
    assert.equal(await put({ 'if-match': '"x"', 'if-unmodified-since': at2026('1') }), 412)
    assert.equal(await readFile(path, 'utf8'), 'old')
    assert.equal(await put({ 'if-unmodified-since': at2026('1') }), 200)
    assert.equal(await put({ 'if-unmodified-since': 'yesterday' }), 200)
    await utimes(path, new Date(), '-1.5')
    assert.equal(await put({ 'if-unmodified-since': 'Wed, 31 Dec 1969 23:59:57 GMT' }), 412)
    assert.equal(await put({ 'if-unmodified-since': 'Wed, 31 Dec 1969 23:59:58 GMT' }), 200)
    assert.equal(await put({ 'if-unmodified-since': at2026('0') }, 'nothing-there.txt'), 201)
  })

  test('content: If-None-Match creates a file, and replaces nothing', async () => {
    await mkdir(join(dir, 'world'))
    await writeFile(join(dir, 'there.txt'), 'old')
    const put = async (path: string, body: string, ifNoneMatch = '*') => {
      const headers = { 'if-none-match': ifNoneMatch, 'content-type': 'application/octet-stream' }
      const reply = await send(service, 'PUT', `/v1/game${at('/content')}?path=${path}`, { headers, body })
      return [reply.status, reply.body.code]
    }
    assert.deepEqual(await put('/there.txt', 'new'), [412, 'precondition_failed'])
    assert.deepEqual(await put('/world', 'new'), [412, 'precondition_failed'])
    assert.equal(await readFile(join(dir, 'there.txt'), 'utf8'), 'old')
    assert.deepEqual((await service.call('GET', at('/trash'))).body.data, [])
    for (const path of ['/new.txt', '/below/new/folders.txt']) {
      const replies = await Promise.all(Array.from({ length: 6 }, (_, writer) => put(path, `${writer}`)))
      assert.deepEqual(replies.map(([status]) => status).sort(), [201, 412, 412, 412, 412, 412])
      const winner = replies.findIndex(([status]) => status === 201)
      assert.equal(await readFile(join(dir, path), 'utf8'), `${winner}`)
    }
    const read = await send(service, 'GET', `/v1/game${at('/content')}?path=/there.txt`)
    const etag = read.headers.get('etag') ?? ''
    assert.deepEqual(await put('/there.txt', 'new', `"other", ${etag}`), [412, 'precondition_failed'])
    assert.deepEqual(await put('/there.txt', 'new', '"other"'), [200, undefined])
  })

  test('search: by name and by content', async () => {
    await writeFile(join(dir, 'server.properties'), 'motd=hello\nlevel-name=world\n')
    const byName = await service.call('GET', at('/search?q=PROPERT'))
    assert.equal(byName.body.data[0].path, '/server.properties')
    const byContent = await service.call('GET', at('/search?q=level-name&content=true'))
    assert.equal(byContent.body.data[0].lineNumber, 2)
  })

  test('usage: what lies on the disk, and the quota', async () => {
    await writeFile(join(dir, 'x'), Buffer.alloc(10_000))
    await service.call('PATCH', `/servers/${serverId}`, { body: { limits: { diskBytes: 1_000_000 } } })
    const { body } = await service.call('GET', at('/usage'))
    assert.equal(body.usedBytes, 12_288)
    assert.equal(body.quotaBytes, 1_000_000)
  })
})
