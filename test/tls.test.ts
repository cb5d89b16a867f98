// TLS without a proxy, with certificates as openssl makes them.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { connect, getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls'
import { pino } from 'pino'
import { openCertificate } from '../src/http/certificate.ts'
import { connectionLimits } from '../src/http/connections.ts'
import { createHttpServer } from '../src/http/server.ts'
import { createClient } from '../src/sdk/index.ts'
import { type CertificateFiles, makeCertificate } from './support/certificates.ts'
import { killLeftovers, runService, spawnService } from './support/process.ts'
import { until } from './support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-tls-'))
const token = `gk_admin_${'7'.repeat(64)}`
let first: CertificateFiles
let second: CertificateFiles

before(() => {
  first = makeCertificate(folder, 'first.example.org')
  second = makeCertificate(folder, 'second.example.org')
  const own = [first, second].map(({ cert }) => readFileSync(cert, 'utf8'))
  setDefaultCACertificates([...getCACertificates(), ...own])
})
after(() => {
  killLeftovers()
  rmSync(folder, { recursive: true, force: true })
})

const env = ({ cert, key }: CertificateFiles) => ({
  GAMEKEEPER_DATA_DIR: mkdtempSync(join(folder, 'data-')),
  GAMEKEEPER_ADMIN_TOKEN: token,
  GAMEKEEPER_TLS_CERT: cert,
  GAMEKEEPER_TLS_KEY: key,
})

/** The name in the certificate that a new connection is shown, with and without a name that it asks for. */
async function shown(url: string, servername?: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), ...(servername ? { servername } : {}) })
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  const { subject = '' } = socket.getPeerX509Certificate() ?? {}
  socket.destroy()
  return subject.replace('CN=', '')
}

test('with a certificate the service speaks TLS, and its address and links say https', async () => {
  const service = await spawnService(env(first))
  assert.match(service.url, /^https:\/\/127\.0\.0\.1:\d+$/)
  const client = createClient({ baseUrl: service.url, token })
  const { id } = await client.servers.create({ name: 'Castle' })
  const link = await fetch(`${service.url}/v1/game/files/${id}/upload`, {
    headers: { authorization: `Bearer ${token}` },
  })
  assert.ok(((await link.json()) as { url: string }).url.startsWith(`${service.url}/`))
  await client.files.upload(id, new Blob(['dragons']), { path: '/world.dat' })
  const { bytes } = await client.files.download(id, '/world.dat')
  assert.equal(await new Response(bytes).text(), 'dragons')
  // Whoever speaks plain HTTP gets no answer, and the service lives on.
  await assert.rejects(fetch(`${service.url.replace('https', 'http')}/healthz`))
  assert.equal((await fetch(`${service.url}/healthz`)).status, 200)
  assert.equal(await service.kill('SIGTERM'), 0)
})

test('a new certificate is taken up while the service runs, and the old pair stays until the new one fits', async () => {
  const files = { cert: join(folder, 'live.pem'), key: join(folder, 'live.key') }
  copyFileSync(first.cert, files.cert)
  copyFileSync(first.key, files.key)
  const service = await spawnService({ ...env(files), GAMEKEEPER_LOG_LEVEL: 'info' })
  const open = connect({ host: '127.0.0.1', port: Number(new URL(service.url).port) })
  await once(open, 'secureConnect')
  assert.equal(await shown(service.url), 'first.example.org')

  const replace = (from: string, to: string) => {
    copyFileSync(from, `${to}.new`)
    renameSync(`${to}.new`, to)
  }
  replace(second.cert, files.cert)
  await until(async () => service.output().includes('The one before stays in use.'))
  assert.equal(await shown(service.url), 'first.example.org')
  replace(second.key, files.key)
  await until(async () => (await shown(service.url)) === 'second.example.org')
  assert.equal(await shown(service.url, 'localhost'), 'second.example.org')
  // Away and damaged are no reason to stop serving.
  rmSync(files.key)
  writeFileSync(files.cert, 'not a certificate')
  writeFileSync(files.key, 'not a key')
  await until(async () => service.output().includes('does not hold a certificate in PEM. The one before stays in use.'))
  assert.equal(await shown(service.url), 'second.example.org')

  // A connection from before goes on.
  open.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n')
  assert.match(String((await once(open, 'data'))[0]), /^HTTP\/1\.1 200/)
  open.destroy()
  assert.equal(await service.kill('SIGTERM'), 0)
})

test('a pair that is none is refused in a sentence', async () => {
  const sealed = join(folder, 'sealed.key')
  spawnSync('openssl', ['ec', '-in', first.key, '-aes128', '-passout', 'pass:dragons', '-out', sealed])
  const refusals: [CertificateFiles, RegExp][] = [
    [{ cert: join(folder, 'none.pem'), key: first.key }, /^The file of GAMEKEEPER_TLS_CERT, .*\(ENOENT\)\.$/],
    [{ cert: first.key, key: first.key }, /^\S+ does not hold a certificate in PEM\.$/],
    [{ cert: first.cert, key: sealed }, /^\S+ does not hold a private key in PEM without a passphrase\.$/],
  ]
  for (const [{ cert, key }, message] of refusals)
    assert.throws(() => openCertificate({ certFile: cert, keyFile: key }), { message })
  const mixed = await runService(env({ cert: first.cert, key: second.key }))
  assert.equal(mixed.code, 1)
  assert.match(mixed.output, /^error: The private key in \S+ is not that of the certificate in \S+\.\n$/)
  const { code, output } = await runService({ ...env(first), GAMEKEEPER_TLS_KEY: '' })
  assert.equal(code, 2)
  assert.match(output, /GAMEKEEPER_TLS_CERT and GAMEKEEPER_TLS_KEY go together, and only one is set/)
})

test('connections are counted with TLS too, and one with a request under way is never closed to make room', async (t) => {
  const certificate = openCertificate({ certFile: first.cert, keyFile: first.key })
  const limits = { ...connectionLimits(1000), connectionsPerAddress: 1 }
  const logger = pino({ level: 'silent' })
  const app = createHttpServer({ logger, trustedProxies: [], https: false, certificate, limits })
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>()
  app.get('/held', async () => {
    arrive()
    await released
    return { ok: true }
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  t.after(() => {
    release()
    return app.close()
  })
  const { port } = app.server.address() as AddressInfo
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => agent.destroy())
  const asked = request({ host: '127.0.0.1', port, path: '/held', agent }).end()
  const answered = once(asked, 'response')
  await arrived
  const refused: TLSSocket = connect({ host: '127.0.0.1', port })
  refused.on('error', () => {})
  // `once` would fail on the error.
  await new Promise((resolve) => refused.once('close', resolve))
  release()
  const [answer] = await answered
  answer.resume()
  await once(answer, 'end')
  assert.equal(answer.statusCode, 200)
  // It waits now, so the next one takes its place.
  const next = connect({ host: '127.0.0.1', port })
  await once(next, 'secureConnect')
  next.destroy()
})
