import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { compressFiles } from '../../scripts/build-panel.ts'
import { withBuiltApp } from '../../test/support/app.ts'
import { readConfig, startService } from '../main.ts'
import { NONCE_MARK, openPanel } from './panel.ts'

const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
const PAGE = `<!doctype html><meta property="csp-nonce" nonce="${NONCE_MARK}"><script type="module" src="/assets/index-Bx1.js"></script>`
const SCRIPT = 'export const x = 1\n'.repeat(200)

describe('the panel', () => {
  let directory: string
  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'gamekeeper-panel-'))
    mkdirSync(join(directory, 'assets'))
    writeFileSync(join(directory, 'index.html'), PAGE)
    writeFileSync(join(directory, 'assets/index-Bx1.js'), SCRIPT)
    writeFileSync(join(directory, 'assets/icon-a.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>')
    writeFileSync(join(directory, 'robots.txt'), 'User-agent: *\nDisallow: /\n')
    compressFiles(directory)
  })
  after(() => rmSync(directory, { recursive: true }))

  const withPanel = (work: (app: FastifyInstance) => Promise<void>) =>
    withBuiltApp(work, { panel: openPanel(directory) })

  test('is served at / and at every address of its own, with a strict policy and a nonce of its own each time', async () => {
    await withPanel(async (app) => {
      const nonces = new Set<string>()
      for (const url of ['/', '/servers/srv_1/files?path=/world', '/sign-in', '/documents', '/v10']) {
        const { statusCode, headers, body } = await app.inject({ url, headers: HTML })
        assert.deepEqual([statusCode, headers['content-type']], [200, 'text/html; charset=utf-8'], url)
        assert.deepEqual([headers['cache-control'], headers['x-frame-options']], ['no-cache', 'DENY'])
        const policy = String(headers['content-security-policy'])
        const nonce = /style-src 'self' 'nonce-([^']+)'/.exec(policy)?.[1] ?? ''
        assert.ok(body.includes(`nonce="${nonce}"`) && !body.includes(NONCE_MARK))
        nonces.add(nonce)
        assert.match(policy, /default-src 'none'; script-src 'self'; .*frame-ancestors 'none'/)
        assert.doesNotMatch(policy, /unsafe|\*|https?:/)
      }
      assert.equal(nonces.size, 5)
      assert.equal((await app.inject({ method: 'HEAD', url: '/servers', headers: HTML })).statusCode, 200)
    })
  })

  test('files below /assets are kept for ever, others are asked for again, compressed as the browser can', async () => {
    await withPanel(async (app) => {
      const get = (url: string, headers: Record<string, string> = {}) => app.inject({ url, headers })
      const plain = await get('/assets/index-Bx1.js')
      assert.deepEqual([plain.body, plain.headers['content-encoding']], [SCRIPT, undefined])
      assert.equal(plain.headers['content-type'], 'text/javascript; charset=utf-8')
      assert.equal(plain.headers['cache-control'], 'public, max-age=31536000, immutable')
      const both = await get('/assets/index-Bx1.js', { 'accept-encoding': 'gzip, deflate, br' })
      assert.deepEqual([both.headers['content-encoding'], both.headers.vary], ['br', 'Accept-Encoding'])
      assert.equal(brotliDecompressSync(both.rawPayload).toString(), SCRIPT)
      const gzip = await get('/assets/index-Bx1.js', { 'accept-encoding': 'br;q=0, gzip;q=0.5' })
      assert.equal(gunzipSync(gzip.rawPayload).toString(), SCRIPT)
      assert.equal((await get('/assets/icon-a.svg')).headers['content-type'], 'image/svg+xml')
      const robots = await get('/robots.txt')
      assert.deepEqual([robots.statusCode, robots.headers['cache-control']], [200, 'no-cache'])
      const again = await get('/robots.txt', { 'if-none-match': String(robots.headers.etag) })
      assert.deepEqual([again.statusCode, again.body], [304, ''])
    })
  })

  test('what is no file and no page of the panel is answered as ever', async () => {
    await withPanel(async (app) => {
      for (const url of [
        '/v1/nothing',
        '/v1/game/nothing',
        '/docs/nothing',
        '/healthz/x',
        '/assets/gone-Ab1.js',
        '/assets/index-Bx1.js.br',
      ])
        assert.equal((await app.inject({ url, headers: HTML })).statusCode, 404, url)
      for (const url of ['/../../package.json', '/assets/..%2f..%2fpackage.json', '/assets/%2e%2e/%2e%2e/package.json'])
        assert.doesNotMatch((await app.inject({ url, headers: HTML })).body, /"name"/, url)
      for (const accept of [undefined, '*/*', 'application/json']) {
        const reply = await app.inject({ url: '/servers', headers: accept === undefined ? {} : { accept } })
        assert.deepEqual([reply.statusCode, reply.json().code], [404, 'not_found'])
      }
      assert.equal((await app.inject({ method: 'POST', url: '/servers', headers: HTML })).statusCode, 404)
      assert.equal((await app.inject({ url: '/v1/game/servers', headers: HTML })).statusCode, 401)
      assert.equal((await app.inject({ url: '/healthz', headers: HTML })).json().status, 'ok')
    })
  })

  test('where none was built there is none, and the page at / leads to the API', async () => {
    assert.equal(openPanel(join(directory, 'nowhere')), null)
    await withBuiltApp(async (app) => {
      assert.match((await app.inject({ url: '/', headers: HTML })).body, /API reference/)
      assert.equal((await app.inject({ url: '/servers', headers: HTML })).statusCode, 404)
    })
  })

  test('a start shows a link that signs in once as the owner, if it is asked to', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'gamekeeper-test-'))
    const config = readConfig({ GAMEKEEPER_PORT: '0', GAMEKEEPER_DATA_DIR: dataDir, GAMEKEEPER_LOG_LEVEL: 'fatal' })
    for (const isFirst of [true, false]) {
      const shown: string[] = []
      const service = await startService(config, async () => {}, undefined, {
        directory,
        showSignInLink: async ({ url }) => void shown.push(url),
      })
      assert.equal(service.newAdminToken !== null, isFirst)
      assert.equal(shown.length, 1)
      const [, link = ''] = (shown[0] ?? '').split(`${service.url}/sign-in#link=`)
      const ask = () => sendSignIn(service.url, link)
      const reply = await ask()
      assert.equal(reply.status, 201)
      const { name, scopes } = (await reply.json()) as { name: string; scopes: string[] }
      assert.deepEqual([name, scopes], ['admin', ['*']])
      assert.equal((await ask()).status, 401)
      await service.stop()
    }
    rmSync(dataDir, { recursive: true })
  })
})

const sendSignIn = (url: string, link: string) =>
  fetch(`${url}/v1/game/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: url },
    body: JSON.stringify({ link }),
  })
