// Requests of tus to the agent's own door, one after the other under one link. Each is a method, headers, an empty line and
// a body; a line with four equals signs stands between two.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { pino } from 'pino'
import { createAgent } from '../../../src/agent/agent.ts'
import { layout } from '../../../src/agent/layout.ts'
import { createHttpServer } from '../../../src/http/server.ts'
import { createSignedLinks } from '../../../src/http/signed-links.ts'
import type { Random } from '../../faults/history/random.ts'
import { scratchBase } from '../../support/scratch.ts'

const SEPARATOR = '\n====\n'
const METHODS = ['POST', 'PATCH', 'HEAD', 'DELETE', 'OPTIONS']
const REQUESTS_MAX = 12
const KEY = Buffer.alloc(32, 7)
const serverId = 'srv_fuzz'
const clock = { now: () => Date.now() }
const b64 = (text: string) => Buffer.from(text).toString('base64')
const sha1 = (text: string) => `sha1 ${createHash('sha1').update(text).digest('base64')}`

export const covers = ['/src/agent/', '/src/http/']

export const dictionary = [
  ...['upload-length: ', 'upload-offset: ', 'upload-defer-length: 1', 'upload-metadata: ', 'upload-checksum: sha1 '],
  ...['upload-concat: partial', 'upload-concat: final;/x', 'filename ', 'relativePath ', 'directory ', 'overwrite '],
  ...[b64('../../x'), b64('a/b/c'), b64('false'), b64(''), 'content-length: 0', 'transfer-encoding: chunked'],
  ...['content-type: application/offset+octet-stream', 'x-http-method-override: PATCH', SEPARATOR, '\n\n'],
]

const request = (method: string, headers: Record<string, string>, body = '') =>
  [method, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), '', body].join('\n')
const create = (length: number, more: Record<string, string> = {}) =>
  request('POST', { 'upload-length': String(length), 'upload-metadata': `filename ${b64('a.bin')}`, ...more })
const patch = (offset: number, body: string, more: Record<string, string> = {}) =>
  request(
    'PATCH',
    { 'upload-offset': String(offset), 'content-type': 'application/offset+octet-stream', ...more },
    body,
  )

export const seeds = () =>
  [
    [create(6), patch(0, 'abc'), request('HEAD', {}), patch(3, 'def')],
    [`${create(3, { 'content-type': 'application/offset+octet-stream' })}abc`],
    [create(0), request('HEAD', {})],
    [create(6), patch(0, 'abcdef', { 'upload-checksum': sha1('abcdef') })],
    [create(6), patch(0, 'abc', { 'upload-checksum': sha1('other') }), patch(0, 'abcdef')],
    [create(6), patch(1, 'abc'), patch(0, 'abcdefgh'), request('DELETE', {}), patch(0, 'a')],
    [
      request('OPTIONS', {}),
      create(5, { 'upload-metadata': `relativePath ${b64('x/y.txt')},overwrite ${b64('false')}` }),
    ],
    [
      request('POST', { 'upload-defer-length': '1', 'upload-metadata': 'filename' }),
      patch(0, 'a', { 'upload-length': '1' }),
    ],
  ].map((requests) => Buffer.from(requests.join(SEPARATOR), 'latin1'))

/** Whole requests left out, doubled and swapped. */
export function mutate(input: Buffer, random: Random): Buffer {
  const requests = input.toString('latin1').split(SEPARATOR)
  const at = random.int(requests.length)
  const taken = requests[at] ?? ''
  if (random.chance(0.3)) requests.splice(at, 1)
  else if (random.chance(0.5)) requests.splice(random.int(requests.length), 0, taken)
  else requests[at] = taken.replace(/\d+/, () => String(random.pick([0, 1, 2, 3, 6, 7, 2 ** 31, 2 ** 53])))
  return Buffer.from(requests.join(SEPARATOR), 'latin1')
}

type Door = Awaited<ReturnType<typeof open>>
let door: Promise<Door> | undefined

async function open() {
  const dataDir = mkdtempSync(join(scratchBase(), 'gamekeeper-fuzz-'))
  const log = pino({ level: 'silent' })
  const agent = createAgent({ dataDir, trashKeepMs: 0, linksKey: KEY, clock, log })
  await agent.servers.create({ serverId })
  const app = createHttpServer({ logger: log, trustedProxies: [], https: false })
  await app.register(agent.routes)
  await agent.start()
  await app.listen({ host: '127.0.0.1', port: 0 })
  const grant = {
    serverId,
    tokenId: 'tok_fuzz',
    tokenExpiresAt: null,
    requestId: 'req_fuzz',
    detail: { uploadId: 'upl_0', maxBytes: 1e6 },
  }
  const link = await createSignedLinks(KEY, clock).sign('upload', grant, 7 * 24 * 3600_000)
  const { port } = app.server.address() as AddressInfo
  const base = `http://127.0.0.1:${port}/v1/game/uploads/${link}`
  return { app, agent, dataDir, base, folder: layout(dataDir).server(serverId).files }
}

export async function close(): Promise<void> {
  if (!door) return
  const { app, agent, dataDir } = await door
  await app.close()
  await agent.stop()
  rmSync(dataDir, { recursive: true, force: true })
}

export async function run(input: Buffer): Promise<void> {
  door ??= open()
  const { base, folder } = await door
  let address = base
  let sent = Buffer.alloc(0)
  for (const text of input.toString('latin1').split(SEPARATOR).slice(0, REQUESTS_MAX)) {
    const { method, headers, body } = parse(text)
    const reply = await send(method === 'POST' ? base : address, method, headers, body)
    assert.ok(reply.status < 500, `${method} ${JSON.stringify(headers)}: ${reply.status} ${reply.body}`)
    if (method === 'POST' && reply.status === 201) {
      address = new URL(String(reply.headers.location), base).href
      sent = Buffer.alloc(0)
    }
    if ((method === 'POST' && reply.status === 201) || (method === 'PATCH' && reply.status === 204)) {
      const offset = Number(reply.headers['upload-offset'] ?? 0)
      sent = Buffer.concat([sent, body.subarray(0, offset - sent.length)])
      assert.equal(sent.length, offset, 'the offset is not what was sent')
    }
    if (method === 'HEAD' && reply.status === 200 && address !== base)
      assert.equal(Number(reply.headers['upload-offset']), sent.length, 'the offset is not what was sent')
  }
  if (address !== base) await send(address, 'DELETE', { 'tus-resumable': '1.0.0' }, Buffer.alloc(0))
  emptyFolder(folder)
}

function send(url: string, method: string, headers: Record<string, string>, body: Buffer) {
  return new Promise<{ status: number; headers: IncomingHttpHeaders; body: string }>((resolve, reject) => {
    const sent = httpRequest(url, { method, headers: { ...headers, 'content-length': body.length } }, async (reply) =>
      resolve({ status: reply.statusCode ?? 0, headers: reply.headers, body: await textOf(reply) }),
    )
    sent.on('error', reject).end(body)
  })
}

function emptyFolder(folder: string): void {
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true })
}

function parse(text: string): { method: string; headers: Record<string, string>; body: Buffer } {
  const [head = '', ...rest] = text.split('\n\n')
  const [first = '', ...lines] = head.split('\n')
  const headers: Record<string, string> = { 'tus-resumable': '1.0.0' }
  for (const line of lines) {
    const [, name, value] = /^([a-z-]{1,40}): ([\x20-\x7e\x80-\xff]*)$/.exec(line) ?? []
    // The framing of the body is the HTTP parser's business, and another test's.
    if (name && value !== undefined && name !== 'transfer-encoding' && name !== 'content-length') headers[name] = value
  }
  const method = METHODS.includes(first) ? first : (METHODS[first.length % METHODS.length] as string)
  return { method, headers, body: Buffer.from(rest.join('\n\n'), 'latin1') }
}
