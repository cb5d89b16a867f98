// The samples for reverse proxies in docs/operating.md, as far as the proxies are at hand.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ROOT } from '../architecture/sources.ts'
import { makeCertificate } from '../support/certificates.ts'
import { needs } from '../support/needs.ts'
import { until } from '../support/until.ts'

const sampleOf = (language: string): string => {
  const page = readFileSync(join(ROOT, 'docs/operating.md'), 'utf8')
  return new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(page)?.[1] ?? ''
}

test('docs/operating.md: Caddy takes the sample, and hands events on as they come', needs('caddy'), async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-caddy-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  const config = join(folder, 'Caddyfile')
  writeFileSync(config, sampleOf('caddy'))
  const checked = spawnSync('caddy', ['validate', '--config', config], { encoding: 'utf8', env })
  assert.equal(checked.status, 0, checked.stderr)

  // The same block for an address without a certificate, in front of a stream that stays open after its first event.
  const stream = createServer((_request, reply) => void reply.writeHead(200, EVENTS).write('data: first\n\n'))
  stream.listen(0, '127.0.0.1')
  await once(stream, 'listening')
  t.after(() => stream.closeAllConnections())
  t.after(() => stream.close())
  const socket = join(folder, 'caddy.sock')
  const block = sampleOf('caddy').replace('127.0.0.1:8080', `127.0.0.1:${(stream.address() as AddressInfo).port}`)
  const local = block.replace('games.example.org {', `http://games.example.org {\n\tbind unix/${socket}`)
  writeFileSync(config, `{\n\tadmin off\n}\n${local}`)
  const caddy = spawn('caddy', ['run', '--config', config], { env, stdio: 'ignore' })
  t.after(() => caddy.kill())
  await until(async () => existsSync(socket))
  const request = get({ socketPath: socket, path: '/', headers: { host: 'games.example.org' } })
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  const [event] = await once(answer, 'data')
  assert.equal(String(event), 'data: first\n\n')
  request.destroy()
})

const EVENTS = { 'content-type': 'text/event-stream' }

test('docs/operating.md: nginx takes the sample', needs('nginx'), () => {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-nginx-'))
  const sample = sampleOf('nginx')
  const { cert, key } = makeCertificate(folder, 'games.example.org')
  const local = sample.replace(/\S+fullchain\.pem/, cert).replace(/\S+privkey\.pem/, key)
  assert.notEqual(local, sample)
  writeFileSync(join(folder, 'nginx.conf'), `pid ${folder}/pid;\nevents {}\nhttp {\naccess_log off;\n${local}}\n`)
  const { status, stderr } = spawnSync('nginx', ['-t', '-e', 'stderr', '-c', join(folder, 'nginx.conf')], {
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
  assert.doesNotMatch(stderr, /\[warn\]/)
  rmSync(folder, { recursive: true })
})
