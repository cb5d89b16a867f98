// What docs/api.md says of every request, sentence by sentence.
import assert from 'node:assert/strict'
import { after, before, describe } from 'node:test'
import { OPERATIONS } from '../../src/contract/index.ts'
import { BASE_PATH, type Operation } from '../../src/contract/operation.ts'
import { createWorld } from '../support/backups.ts'
import { API_DOCS, promisesUnder } from '../support/promises.ts'
import { send } from '../support/send.ts'
import { type Reply, startTestService, type TestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const { promise, checkList } = promisesUnder('Requests')
const pick = (reply: Reply) => [reply.status, reply.body.code]
const faultsOf = (reply: Reply): string[] => [
  ...new Set<string>(reply.body.errors.map((fault: { path: string }) => fault.path)),
]

describe('requests', () => {
  let service: TestService
  let serverId: string
  before(async () => {
    service = await startTestService()
    serverId = (await service.createServer()).id
  })
  after(() => service.stop())

  const json = (method: string, path: string, body: unknown, more: object = {}) =>
    send(service, method, BASE_PATH + path, { body: JSON.stringify(body), headers: JSON_TYPE, ...more })
  const write = (path: string, content = 'x') =>
    service.call('PUT', `/files/${serverId}/content?path=${path}`, { body: content })
  const linkTo = async (what: string) => (await service.call('GET', `/files/${serverId}/${what}`)).body.url as string
  const names = async (path = '/') =>
    (await service.call('GET', `/files/${serverId}?path=${path}`)).body.data.map(
      (entry: { name: string }) => entry.name,
    )

  promise(
    'A field that is not known is refused with `invalid_request` and named, in bodies and in queries, also on `/healthz`, `/readyz`, `/metrics` and signed links.',
    async () => {
      await write('/known.txt')
      const upload = await linkTo('upload')
      for (const [method, path] of [
        ['GET', '/healthz'],
        ['GET', '/readyz'],
        ['GET', '/metrics'],
        ['GET', `${BASE_PATH}/openapi.json`],
        ['GET', `${BASE_PATH}/files/${serverId}/upload`],
        ['GET', await linkTo('download?path=/known.txt')],
        ['POST', upload],
        ['OPTIONS', upload],
        ['HEAD', `${upload}/upl_x`],
      ] as const) {
        const reply = await send(service, method, `${path}?colour=red`)
        assert.equal(reply.status, 400, `${method} ${path}: ${reply.text}`)
        if (method !== 'HEAD') assert.deepEqual([reply.body.code, ...faultsOf(reply)], ['invalid_request', '/colour'])
      }
      const body = await json('POST', `/backups/${serverId}`, { colour: 'red' })
      assert.deepEqual([...pick(body), ...faultsOf(body)], [400, 'invalid_request', '/colour'])
    },
  )

  promise('A slash at the end of a path means nothing.', async () => {
    for (const path of ['/healthz', '/readyz', '/metrics', `${BASE_PATH}/openapi.json`, `${BASE_PATH}/servers`])
      assert.equal((await send(service, 'GET', `${path}/`)).status, 200, path)
    await write('/slash.txt', 'here')
    assert.equal((await send(service, 'GET', `${await linkTo('download?path=/slash.txt')}/`)).text, 'here')
    const headers = { 'tus-resumable': '1.0.0', 'upload-length': '2', 'upload-metadata': `filename ${btoa('t.txt')}` }
    const link = `${await linkTo('upload')}/`
    const created = await send(service, 'POST', link, { headers })
    assert.equal(created.status, 201, created.text)
    const at = new URL(created.headers.get('location') ?? '', link).href
    const patch = { 'tus-resumable': '1.0.0', 'upload-offset': '0', 'content-type': 'application/offset+octet-stream' }
    assert.equal((await send(service, 'PATCH', `${at}/`, { headers: patch, body: 'ok' })).status, 204)
    const keyed = { headers: { ...JSON_TYPE, 'idempotency-key': 'slash' } }
    const first = await json('POST', `/backups/${serverId}`, {}, keyed)
    const again = await json('POST', `/backups/${serverId}/`, {}, keyed)
    assert.deepEqual([again.status, again.body.id], [202, first.body.id])
  })

  promise(
    'A known path with another method answers `method_not_allowed`, and `Allow` names the methods that it takes.',
    async () => {
      const upload = await linkTo('upload')
      for (const [method, path, allow] of [
        ['PUT', `${BASE_PATH}/servers`, 'GET, HEAD, POST, OPTIONS'],
        ['PUT', `${BASE_PATH}/servers/?x=1`, 'GET, HEAD, POST, OPTIONS'],
        ['PROPFIND', `${BASE_PATH}/servers/${serverId}`, 'GET, HEAD, PATCH, DELETE, OPTIONS'],
        ['PUT', `${BASE_PATH}/backups/recover`, 'GET, HEAD, POST, OPTIONS'],
        ['POST', '/healthz', 'GET, HEAD, OPTIONS'],
        ['DELETE', '/metrics', 'GET, HEAD, OPTIONS'],
        ['POST', `${BASE_PATH}/openapi.json`, 'GET, HEAD, OPTIONS'],
        ['GET', upload, 'POST, OPTIONS'],
        ['GET', `${upload}/upl_x`, 'HEAD, PATCH, DELETE, OPTIONS'],
        ['POST', await linkTo('download?path=/'), 'GET, HEAD, OPTIONS'],
      ] as const) {
        const reply = await send(service, method, path, { token: null })
        assert.deepEqual([...pick(reply), reply.headers.get('allow')], [405, 'method_not_allowed', allow], path)
      }
      assert.deepEqual(pick(await send(service, 'PUT', '/nowhere')), [404, 'not_found'])
    },
  )

  promise('`OPTIONS` on a known path answers 204 with `Allow`, without a token.', async () => {
    const reply = await send(service, 'OPTIONS', `${BASE_PATH}/files/${serverId}`, { token: null })
    assert.deepEqual([reply.status, reply.headers.get('allow')], [204, 'GET, HEAD, DELETE, OPTIONS'])
    const upload = await linkTo('upload')
    const headers = { 'tus-resumable': '1.0.0', 'upload-length': '2', 'upload-metadata': `filename ${btoa('o.txt')}` }
    const created = await send(service, 'POST', upload, { headers })
    for (const [link, allow] of [
      [upload, 'POST, OPTIONS'],
      [new URL(created.headers.get('location') ?? '', upload).href, 'HEAD, PATCH, DELETE, OPTIONS'],
    ] as const) {
      const tus = await send(service, 'OPTIONS', link, { token: null })
      assert.deepEqual([tus.status, tus.headers.get('tus-version')], [204, '1.0.0'])
      assert.equal(tus.headers.get('allow'), allow)
    }
    assert.equal((await send(service, 'OPTIONS', '/nowhere')).status, 404)
  })

  promise('`HEAD` answers as `GET` does, without the body.', async () => {
    const { id } = (await json('POST', `/backups/${serverId}`, {})).body
    for (const path of ['/healthz', `${BASE_PATH}/servers`, `${BASE_PATH}/servers/srv_none`]) {
      const [get, head] = [await send(service, 'GET', path), await send(service, 'HEAD', path)]
      assert.deepEqual([head.status, head.text], [get.status, ''], path)
      assert.equal(head.headers.get('content-type'), get.headers.get('content-type'), path)
    }
    for (const path of [`/backups/${serverId}/${id}`, `/servers/${serverId}/activity`]) {
      const stream = await send(service, 'HEAD', BASE_PATH + path, { headers: { accept: 'text/event-stream' } })
      assert.deepEqual([stream.status, stream.headers.get('content-type')], [200, 'text/event-stream'], path)
    }
  })

  promise(
    'An operation without a body takes none, an empty one, `{}` or `null`, whatever its `Content-Type`.',
    async () => {
      const path = `${BASE_PATH}/servers/${serverId}`
      for (const body of [undefined, '', '{}', ' {\n}', 'null'])
        for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=x']) {
          const options = { headers: { 'content-type': type }, ...(body === undefined ? {} : { body }) }
          assert.equal((await send(service, 'GET', path, options)).status, 200, `GET ${body} ${type}`)
          const { id } = await service.mint(['servers:read'])
          assert.equal(
            (await send(service, 'DELETE', `${BASE_PATH}/tokens/${id}`, options)).status,
            204,
            `${body} ${type}`,
          )
        }
      for (const body of ['[]', '{"a":1}', '0', 'x'])
        assert.deepEqual(pick(await send(service, 'GET', path, { body })), [400, 'invalid_request'], body)
    },
  )

  promise(
    '`null` for an optional field of a body counts as absent, unless null has a meaning of its own there.',
    async () => {
      const backup = await json('POST', `/backups/${serverId}`, { name: null, ignored: null, isLocked: null })
      assert.deepEqual([backup.status, backup.body.isLocked], [202, false], backup.text)
      assert.match(backup.body.name, /^Backup at /)
      const made = await json('POST', '/servers', { name: 'Null', limits: null, labels: null, port: null })
      assert.deepEqual([made.status, made.body.port], [201, null], made.text)
      const path = `/servers/${made.body.id}`
      await json('PATCH', path, { port: 25565, labels: { a: 'b' }, limits: { backups: 3 } })
      const kept = await json('PATCH', path, { name: null, labels: null, limits: null, description: 'kept' })
      assert.deepEqual([kept.body.name, kept.body.labels, kept.body.limits.backups], ['Null', { a: 'b' }, 3])
      const cleared = await json('PATCH', path, { port: null, limits: { backups: null } })
      assert.deepEqual([cleared.body.port, cleared.body.limits.backups], [null, null])
      assert.deepEqual(pick(await json('PATCH', path, { name: null })), [400, 'invalid_request'])
      const meaning = [
        ...(API_DOCS.split('Null has a meaning')[1]?.split('\n## ')[0] ?? '').matchAll(/`([\w.]+)`(?=[,` \w.]*\|)/g),
      ]
      assert.deepEqual([...new Set(meaning.map(([, field]) => field))].sort(), nullableFields())
    },
  )

  promise('An empty `name`, `timeZone` or `namePattern` counts as absent where it is optional.', async () => {
    const backup = await json('POST', `/backups/${serverId}`, { name: '' })
    assert.equal(backup.status, 202, backup.text)
    assert.match(backup.body.name, /^Backup at /)
    const schedule = { name: 'Nightly', cron: '0 4 * * *', timeZone: '', namePattern: '' }
    const made = await json('POST', `/backups/${serverId}/schedules`, schedule)
    assert.deepEqual([made.status, made.body.timeZone], [201, 'UTC'], made.text)
    assert.equal((await json('PATCH', `/servers/${serverId}`, { name: '', port: 25570 })).body.name, 'Castle')
    assert.deepEqual(pick(await json('PATCH', `/servers/${serverId}`, { name: '' })), [400, 'invalid_request'])
    assert.deepEqual(faultsOf(await json('POST', '/servers', { name: '' })), ['/name'])
    assert.deepEqual(faultsOf(await json('POST', `/files/${serverId}/folder`, { name: '' })), ['/name'])
    // An empty text is no path and no id: whoever sends one has lost what they meant.
    assert.deepEqual(faultsOf(await json('DELETE', `/files/${serverId}`, { root: '', files: ['a'] })), ['/root'])
  })

  promise('A body that must say something is required, and the reference says which ones are.', async () => {
    const { paths } = (await service.call('GET', `${BASE_PATH}/openapi.json`)).body
    const required = OPERATIONS.filter(
      ({ path, method }) => paths[BASE_PATH + path][method.toLowerCase()].requestBody?.required,
    ).map(({ id }) => id)
    const optional = OPERATIONS.filter(({ id, body }) => body && !required.includes(id)).map(({ id }) => id)
    assert.deepEqual(optional.toSorted(), [
      ...['checkDns', 'createBackup', 'installServer', 'previewBackup', 'rehearseBackup'],
      'requestBackupDownload',
    ])
    const content = paths[`${BASE_PATH}/files/{serverId}/content`].put.requestBody
    assert.deepEqual([content.required, Object.keys(content.content)], [false, ['application/octet-stream']])
  })

  promise(
    'Nothing is replaced or deleted because something was left out: a restore needs `mode` or `paths`, `PUT …/retention` a rule or all five as null, `POST …/retention/apply` needs `dryRun`.',
    async () => {
      const { id } = await service.createServer({ name: 'Kept' })
      const retention = `/backups/${id}/retention`
      const none = { keepLast: null, keepHourly: null, keepDaily: null, keepWeekly: null, keepMonthly: null }
      const rules = { ...none, keepLast: 3, keepMonthly: 12 }
      assert.deepEqual((await json('PUT', retention, { keepLast: 3, keepMonthly: 12 })).body, rules)
      const nothing = [{}, { keepLast: null }, { ...none, keepLast: undefined }, { keepLast: null, keepDaily: null }]
      for (const body of nothing) assert.deepEqual(pick(await json('PUT', retention, body)), [400, 'invalid_request'])
      assert.deepEqual(pick(await send(service, 'PUT', BASE_PATH + retention)), [400, 'invalid_request'])
      assert.deepEqual((await service.call('GET', retention)).body, rules)
      assert.deepEqual((await json('PUT', retention, none)).body, none)
      assert.deepEqual(faultsOf(await json('POST', `${retention}/apply`, {})), ['/dryRun'])
      const restore = `/backups/${id}/bkp_none/restore`
      const vague = [{}, { safetyBackup: false }, { targetServerId: id }, { mode: null, paths: null }]
      for (const body of vague) {
        const reply = await json('POST', restore, body)
        assert.deepEqual([...pick(reply), reply.body.errors.length], [400, 'invalid_request', 1], reply.text)
        assert.match(reply.body.detail, /`mode`, `paths` or both/)
      }
      assert.deepEqual(pick(await send(service, 'POST', BASE_PATH + restore)), [400, 'invalid_request'])
      for (const body of [{ mode: 'merge' }, { paths: ['/a'] }])
        assert.deepEqual(pick(await json('POST', restore, body)), [404, 'not_found'])
    },
  )

  promise('In every field that holds a path, slashes in a row, `.` and a slash at the end mean nothing.', async () => {
    const made = await json('POST', `/files/${serverId}/folder`, { name: 'deep', path: '//mods/./new//' })
    assert.deepEqual([made.status, made.body.path], [201, '/mods/new/deep'], made.text)
    await write('.//mods//new/./a.txt/')
    const copy = await json('POST', `/files/${serverId}/copy`, { location: 'mods/./new//a.txt/' })
    assert.deepEqual([copy.status, copy.body.path], [201, '/mods/new/a copy.txt'])
    const move = { from: './mods/new/a copy.txt', to: '//mods/new/b.txt/' }
    assert.equal(
      (await json('POST', `/files/${serverId}/move`, { moves: [move] })).body.data[0].path,
      '/mods/new/b.txt',
    )
    const list = `/files/${serverId}?limit=1&path=`
    const { nextCursor } = (await service.call('GET', `${list}/mods/new`)).body
    assert.equal((await service.call('GET', `${list}mods//new/./&cursor=${nextCursor}`)).status, 200)
    const gone = await json('DELETE', `/files/${serverId}`, { root: '/mods/./new//', files: ['.//deep/', 'b.txt'] })
    assert.deepEqual(gone.body, { deleted: ['.//deep/', 'b.txt'], missing: [] })
    const [entry] = (await service.call('GET', `/servers/${serverId}/activity?event=file.deleted`)).body.data
    assert.equal(entry.properties.root, '/mods/new')
    const form = new FormData()
    form.append('files', new Blob(['x']), './sub//up.txt')
    const uploaded = await fetch(`${await linkTo('upload')}?directory=/mods//new/./`, { method: 'POST', body: form })
    assert.equal((await uploaded.json()).data[0].path, '/mods/new/sub/up.txt')
    const metadata = `filename ${btoa('./tus.txt')},directory ${btoa('./mods//new/')}`
    const headers = { 'tus-resumable': '1.0.0', 'upload-length': '0', 'upload-metadata': metadata }
    assert.equal((await send(service, 'POST', await linkTo('upload'), { headers })).status, 201)
    const { properties } = await until(async () => {
      const { data } = (await service.call('GET', `/servers/${serverId}/activity?event=file.uploaded&limit=1`)).body
      return data[0]?.properties.protocol === 'tus' && data[0]
    })
    assert.deepEqual([properties.directory, properties.files], ['/mods/new', ['tus.txt']])
  })

  promise('`..` in a path is `invalid_path`, however it is written.', async () => {
    await write('/safe/inside.txt')
    for (const path of ['/safe/../safe', 'safe/..', './..', '/safe/%2e%2e/safe', '..\\safe', '//..//'])
      for (const [method, at, body] of [
        ['DELETE', '', { root: path, files: ['inside.txt'] }],
        ['DELETE', '', { files: [`${path}/safe/inside.txt`] }],
        ['POST', '/folder', { name: 'x', path }],
        ['POST', '/copy', { location: path }],
        ['POST', '/pack', { root: '/safe', files: [path] }],
        ['POST', '/unpack', { path: `${path}/x.zip` }],
        ['POST', '/unpack', { path: '/x.zip', directory: path }],
        ['POST', '/pull', { url: 'https://example.com/x', directory: path }],
      ] as const)
        assert.deepEqual(pick(await json(method, `/files/${serverId}${at}`, body)), [400, 'invalid_path'], path)
    assert.deepEqual(await names('/safe'), ['inside.txt'])
  })

  promise('The entries of `files` are names or paths relative to `root`, also with a slash in front.', async () => {
    for (const path of ['/rooted.txt', '/world/region/r.mca', '/world/level.dat', '/region']) await write(path)
    const top = await json('DELETE', `/files/${serverId}`, { root: '/', files: ['/rooted.txt', '/world/level.dat'] })
    assert.deepEqual(top.body, { deleted: ['/rooted.txt', '/world/level.dat'], missing: [] })
    const inner = await json('DELETE', `/files/${serverId}`, { root: '/world', files: ['/region', '/world/region'] })
    assert.deepEqual(inner.body, { deleted: ['/region'], missing: ['/world/region'] })
    assert.ok((await names()).includes('region'), 'what lies outside the root is untouched')
    for (const files of [['/'], ['.'], ['./'], ['//'], ['']])
      assert.deepEqual(pick(await json('DELETE', `/files/${serverId}`, { root: '/world', files })), [
        400,
        'invalid_path',
      ])
    const pack = { root: '/', files: ['/world', 'world', '/world/region/'], target: '//packed.zip' }
    const { jobEnded } = createWorld(service)
    const packed = await jobEnded(serverId, (await json('POST', `/files/${serverId}/pack`, pack)).body.id)
    assert.equal(packed.status, 'completed', JSON.stringify(packed.error))
    const unpack = await json('POST', `/files/${serverId}/unpack`, { path: './packed.zip', directory: 'unpacked//' })
    assert.equal((await jobEnded(serverId, unpack.body.id)).status, 'completed', 'no name is in it twice')
  })
})

interface Schema {
  type?: string | string[]
  anyOf?: Schema[]
  properties?: Record<string, Schema>
}

/** Fields of bodies that can be null, as `a.b`. */
function nullableFields(): string[] {
  const within = ({ properties = {} }: Schema, path = ''): string[] =>
    Object.entries(properties).flatMap(([name, field]) => [
      ...([field.type].flat().includes('null') ? [path + name] : []),
      ...within(field, `${path}${name}.`),
    ])
  return [...new Set(OPERATIONS.flatMap(({ body }: Operation) => (body ? within(body as Schema) : [])))].sort()
}

checkList()
