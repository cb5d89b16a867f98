import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { makeCertificate } from '../../../test/support/certificates.ts'
import { createDirectGet, type SignedRequest } from './direct-get.ts'

const BODY = Buffer.from('a part of a pack')
const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-test-'))
const trusted = getCACertificates()
const watch = { signal: new AbortController().signal, touch() {} }
let server: Server
let certificate: string
let connections = 0

before(async () => {
  const { cert, key } = makeCertificate(folder, 'bucket.test')
  certificate = readFileSync(cert, 'utf8')
  server = createServer({ cert: certificate, key: readFileSync(key) }, (_, response) =>
    response.writeHead(206, { 'content-length': BODY.length }).end(BODY),
  )
  server.on('secureConnection', () => connections++)
  server.listen(0, '0.0.0.0')
  await once(server, 'listening')
})
after(() => {
  setDefaultCACertificates(trusted)
  server.close()
  server.closeAllConnections()
  rmSync(folder, { recursive: true })
})

const requestTo = (hostname: string): SignedRequest => ({
  protocol: 'https:',
  hostname,
  port: (server.address() as AddressInfo).port,
  method: 'GET',
  path: '/games/packs/one',
  headers: { host: hostname },
})

test('a server whose certificate nobody has vouched for gets no request', async () => {
  using direct = createDirectGet(5000)
  const reading = direct.get(requestTo('127.0.0.1'), Buffer.alloc(100), watch)
  await assert.rejects(reading, { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
})

test('over TLS too the bytes are read into the memory that is given, over one connection', async () => {
  setDefaultCACertificates([...trusted, certificate])
  connections = 0
  using direct = createDirectGet(5000)
  const into = Buffer.from(new SharedArrayBuffer(100))
  for (let time = 0; time < 3; time++) {
    into.fill(0)
    const answer = await direct.get(requestTo('localhost'), into, watch)
    assert.deepEqual([answer?.statusCode, answer?.length], [206, BODY.length])
    assert.ok(into.subarray(0, BODY.length).equals(BODY))
  }
  assert.equal(connections, 1)
})

test('a certificate for another name is none', async () => {
  setDefaultCACertificates([...trusted, certificate])
  using direct = createDirectGet(5000)
  const reading = direct.get(requestTo('127.0.0.2'), Buffer.alloc(100), watch)
  await assert.rejects(reading, { code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
})
