// What docs/api.md says of calls from pages of other origins, sentence by sentence.
import assert from 'node:assert/strict'
import { after, before, describe } from 'node:test'
import { pino } from 'pino'
import { BASE_PATH } from '../../src/contract/operation.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { promisesUnder } from '../support/promises.ts'
import { send } from '../support/send.ts'
import { type Reply, startTestService, type TestService } from '../support/service.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const { promise, checkList } = promisesUnder('Browsers')

describe('browsers', () => {
  const PANEL = 'https://panel.example.org'
  let service: TestService
  let serverId: string
  before(async () => {
    service = await startTestService({ env: { GAMEKEEPER_CORS_ORIGINS: `${PANEL}, http://localhost:5173` } })
    serverId = (await service.createServer()).id
  })
  after(() => service.stop())

  const from = (origin: string, more: object = {}) => ({ headers: { origin, ...more } })
  const cors = ({ headers }: Reply) => [...headers.keys()].filter((name) => name.startsWith('access-control-'))
  const preflight = (origin: string, method = 'DELETE') =>
    from(origin, {
      'access-control-request-method': method,
      'access-control-request-headers': 'authorization,content-type',
    })

  promise('By default no answer has a CORS header.', async () => {
    await using plain = await startTestService()
    for (const options of [from(PANEL), preflight(PANEL), {}]) {
      for (const [method, path] of [
        ['GET', '/healthz'],
        ['OPTIONS', `${BASE_PATH}/servers`],
        ['GET', '/nowhere'],
      ] as const) {
        const reply = await send(plain, method, path, options)
        assert.deepEqual([cors(reply), reply.headers.get('vary')], [[], null])
      }
    }
  })

  promise('Every answer to an origin that is named carries `Access-Control-Allow-Origin`, errors too.', async () => {
    const upload = (await service.call('GET', `/files/${serverId}/upload`)).body.url as string
    const large = { body: 'x'.repeat(1024 * 1024 + 1), ...from(PANEL, JSON_TYPE) }
    for (const [status, method, path, options] of [
      [200, 'GET', '/healthz', from(PANEL)],
      [200, 'GET', `${BASE_PATH}/servers`, from('http://localhost:5173')],
      [401, 'GET', `${BASE_PATH}/servers`, { token: null, ...from(PANEL) }],
      [400, 'GET', `${BASE_PATH}/servers?x=1`, from(PANEL)],
      [400, 'GET', `${BASE_PATH}/servers/%zz`, from(PANEL)],
      [404, 'GET', `${BASE_PATH}/servers/srv_none`, from(PANEL)],
      [404, 'GET', '/nowhere', from(PANEL)],
      [405, 'PUT', `${BASE_PATH}/servers`, from(PANEL)],
      [413, 'POST', `${BASE_PATH}/servers`, large],
      [415, 'POST', `${BASE_PATH}/servers`, { body: 'x', ...from(PANEL) }],
      [415, 'POST', upload, { body: 'x', ...from(PANEL) }],
      [404, 'GET', `${BASE_PATH}/downloads/nonsense`, from(PANEL)],
    ] as const) {
      const reply = await send(service, method, path, options)
      assert.equal(reply.status, status, `${path}: ${reply.text}`)
      assert.equal(reply.headers.get('access-control-allow-origin'), options.headers.origin, path)
    }
    const broken = createHttpServer({
      logger: pino({ level: 'silent' }),
      trustedProxies: [],
      https: false,
      corsOrigins: [PANEL],
    })
    broken.get('/', () => Promise.reject(new Error('not foreseen')))
    const failed = await broken.inject({ url: '/', headers: { origin: PANEL } })
    assert.deepEqual([failed.statusCode, failed.headers['access-control-allow-origin']], [500, PANEL])
    const stranger = await send(service, 'GET', '/healthz', from('https://evil.example.org'))
    assert.deepEqual(cors(stranger), [])
    for (const origin of [
      'https://panel.example.org.evil.org',
      'null',
      'https://PANEL.example.org',
      'http://panel.example.org',
    ])
      assert.deepEqual(cors(await send(service, 'GET', '/healthz', from(origin))), [], origin)
    const stream = new AbortController()
    const events = await fetch(`${service.url}${BASE_PATH}/servers/${serverId}/activity`, {
      signal: stream.signal,
      headers: { authorization: `Bearer ${service.adminToken}`, accept: 'text/event-stream', origin: PANEL },
    })
    assert.equal(events.headers.get('access-control-allow-origin'), PANEL)
    stream.abort()
    await service.restart({ GAMEKEEPER_RATE_LIMIT: '1' })
    const replies = [
      await send(service, 'GET', `${BASE_PATH}/servers`, from(PANEL)),
      await send(service, 'GET', `${BASE_PATH}/servers`, from(PANEL)),
    ]
    assert.equal(replies[1]?.status, 429)
    assert.equal(replies[1]?.headers.get('access-control-allow-origin'), PANEL)
    await service.restart({ GAMEKEEPER_RATE_LIMIT: '0' })
  })

  promise('A preflight is answered with 204, without a token and before a link is opened.', async () => {
    for (const path of [
      `${BASE_PATH}/servers`,
      `${BASE_PATH}/uploads/dead`,
      `${BASE_PATH}/downloads/dead`,
      '/nowhere',
    ]) {
      const reply = await send(service, 'OPTIONS', path, { token: null, ...preflight(PANEL) })
      assert.deepEqual([reply.status, reply.headers.get('access-control-allow-origin')], [204, PANEL], path)
      assert.match(reply.headers.get('access-control-allow-methods') ?? '', /PUT, PATCH, DELETE/)
      for (const name of [
        'Authorization',
        'Content-Type',
        'Idempotency-Key',
        'If-Match',
        'Range',
        'Tus-Resumable',
        'Upload-Offset',
      ])
        assert.match(reply.headers.get('access-control-allow-headers') ?? '', new RegExp(`\\b${name}\\b`))
    }
    const stranger = await send(service, 'OPTIONS', `${BASE_PATH}/servers`, preflight('https://evil.example.org'))
    assert.deepEqual(cors(stranger), [])
  })

  promise('Credentials are never allowed: a page sends its token in `Authorization`.', async () => {
    await service.restart({ GAMEKEEPER_CORS_ORIGINS: '*' })
    for (const [method, options] of [
      ['GET', from(PANEL)],
      ['OPTIONS', preflight(PANEL)],
    ] as const) {
      const reply = await send(service, method, `${BASE_PATH}/servers`, options)
      assert.equal(reply.headers.get('access-control-allow-credentials'), null)
      assert.equal(reply.headers.get('access-control-allow-origin'), '*')
    }
  })

  promise('Every answer says `Vary: Origin`, unless any origin is allowed.', async () => {
    await service.restart({ GAMEKEEPER_CORS_ORIGINS: '*' })
    assert.equal((await send(service, 'GET', '/healthz', from(PANEL))).headers.get('vary'), null)
    await service.restart({ GAMEKEEPER_CORS_ORIGINS: PANEL })
    for (const [path, options] of [
      ['/healthz', {}],
      ['/nowhere', from(PANEL)],
      ['/healthz', from('https://evil.example.org')],
    ] as const)
      assert.equal((await send(service, 'GET', path, options)).headers.get('vary'), 'Origin')
  })

  promise(
    'A page can read `Location`, `X-Request-Id`, `RateLimit`, `Retry-After`, `ETag` and the headers of tus.',
    async () => {
      const exposed = (await send(service, 'GET', '/healthz', from(PANEL))).headers.get('access-control-expose-headers')
      const list = (exposed ?? '').split(', ')
      for (const name of [
        'Location',
        'X-Request-Id',
        'RateLimit',
        'Retry-After',
        'ETag',
        'Tus-Resumable',
        'Tus-Version',
        'Upload-Offset',
        'Upload-Length',
        'Upload-Expires',
      ])
        assert.ok(list.includes(name), name)
    },
  )
})

checkList()
