// Bodies in frames that no client would send: chunk extensions without end, one byte a chunk, two lengths at once, and bodies
// that are announced and never come.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { layout } from '../../src/agent/layout.ts'
import { killLeftovers } from '../support/process.ts'
import { until } from '../support/until.ts'
import { attack } from './support/attack.ts'
import { openScene, type Scene } from './support/scene.ts'
import { sized } from './support/size.ts'

after(killLeftovers)

const NEVER = /(?!)/

const chunk = (text: string, extension = '') => `${text.length.toString(16)}${extension}\r\n${text}\r\n`

async function open(t: TestContext, { keeper }: Scene): Promise<Socket> {
  const { hostname, port } = new URL(keeper.url)
  const socket = connect(Number(port), hostname)
  t.after(() => socket.destroy())
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** All that the service says before it closes the connection, or until it has said this. */
async function heard(socket: Socket, expected = NEVER): Promise<string> {
  let text = ''
  while (!expected.test(text)) {
    const [data] = await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => [undefined])])
    if (!Buffer.isBuffer(data)) return text
    text += data
  }
  return text
}

const headTo = (address: string, ...lines: string[]) =>
  [`${address} HTTP/1.1`, 'host: x', ...lines, '', ''].join('\r\n')

const headOf = ({ attacker: { serverId, token } }: Scene, path: string, ...lines: string[]) =>
  headTo(`PUT /v1/game/files/${serverId}/content?path=${path}`, `authorization: Bearer ${token}`, ...lines)

/** Written as fast as the service takes it; ends early where it does not. */
async function send(socket: Socket, piece: string, times: number): Promise<void> {
  for (let index = 0; index < times && socket.writable; index++)
    if (!socket.write(piece)) await Promise.race([once(socket, 'drain'), once(socket, 'close')])
}

/** Every way in which a body is taken, with one that is thrown away: its head, what is in it, and the answer. */
async function everyBody(scene: Scene, length: number): Promise<[head: string, body: string, answer: RegExp][]> {
  const { attacker } = scene
  const link = new URL((await attacker.call('GET', `/files/${attacker.serverId}/upload`)).body.url).pathname
  const headers = {
    'tus-resumable': '1.0.0',
    'upload-length': String(length),
    'upload-metadata': `filename ${Buffer.from('tus').toString('base64')}`,
  }
  const created = await attacker.call('POST', link, { headers, token: null })
  const address = new URL(created.headers.get('location') ?? '', attacker.url + link).pathname
  const chunked = 'transfer-encoding: chunked'
  const authorization = `authorization: Bearer ${attacker.token}`
  const part = '--x\r\ncontent-disposition: form-data; name="files"; filename="form"\r\n\r\n'
  const folder = `POST /v1/game/files/${attacker.serverId}/folder`
  const bytes = 'x'.repeat(length)
  return [
    [headOf(scene, '/put', chunked), bytes, /^HTTP\/1\.1 201 /],
    [
      headTo(folder, authorization, 'content-type: application/json', chunked),
      `${' '.repeat(length)}{"path":"/","name":"json"}`,
      /^HTTP\/1\.1 201 /,
    ],
    [
      headTo(`POST ${link}`, 'content-type: multipart/form-data; boundary=x', chunked),
      `${part}${bytes}\r\n--x--\r\n`,
      /^HTTP\/1\.1 200 /,
    ],
    [
      headTo(
        `PATCH ${address}`,
        'tus-resumable: 1.0.0',
        'upload-offset: 0',
        'content-type: application/offset+octet-stream',
        chunked,
      ),
      bytes,
      /^HTTP\/1\.1 204 /,
    ],
    [headTo(folder, 'content-type: application/json', chunked), bytes, /^HTTP\/1\.1 401 /],
  ]
}

async function sendInOneByteChunks(t: TestContext, scene: Scene, length: number): Promise<void> {
  const { attacker } = scene
  const bodies = await everyBody(scene, length)
  const frames = bodies.map(([head, body]) => `${head}${body.replaceAll(/./gs, '1\r\n$&\r\n')}0\r\n\r\n`)
  const sockets = await Promise.all(bodies.map(() => open(t, scene)))
  const answers = sockets.map((socket) => heard(socket, /\r\n\r\n/))
  for (const [index, socket] of sockets.entries()) socket.write(frames[index] ?? '')
  for (const [index, answer] of answers.entries()) assert.match(await answer, bodies[index]?.[2] ?? NEVER)
  assert.deepEqual(readdirSync(attacker.folder).sort(), ['form', 'json', 'put', 'tus'])
  for (const name of ['form', 'put', 'tus'])
    assert.equal(readFileSync(join(attacker.folder, name), 'utf8'), 'x'.repeat(length))
}

test('chunks of one byte arrive, whoever takes them, and chunk extensions without end are refused', async (t) => {
  const scene = await openScene(t)
  const { attacker } = scene
  await attack(scene, async () => {
    await sendInOneByteChunks(t, scene, sized(30_000, 300_000))
    for (const extension of [`;${'e'.repeat(1_000_000)}`, ';a=b'.repeat(250_000)]) {
      const socket = await open(t, scene)
      const refused = heard(socket)
      socket.write(headOf(scene, '/extended', 'transfer-encoding: chunked'))
      await send(socket, chunk('x', extension), sized(4, 50))
      socket.end('0\r\n\r\n')
      // Cut while it still sends, it may not hear why.
      assert.match(await refused, /^(HTTP\/1\.1 4\d\d |$)/)
    }
    assert.equal(existsSync(join(attacker.folder, 'extended')), false)
  })
})

test('a request with two lengths, or with one that lies, is no second request', async (t) => {
  const scene = await openScene(t)
  const { attacker, victim } = scene
  const inner = [
    `PUT /v1/game/files/${victim.serverId}/content?path=/smuggled HTTP/1.1`,
    'host: x',
    `authorization: Bearer ${attacker.token}`,
    'content-length: 1',
    '',
    'x',
  ].join('\r\n')
  const pairs = [
    ['content-length: 4', 'transfer-encoding: chunked'],
    ['transfer-encoding: chunked', 'content-length: 4'],
    ['content-length: 4', 'content-length: 5'],
    ['content-length: +4'],
    ['transfer-encoding: chunked', 'transfer-encoding: identity'],
    ['transfer-encoding: xchunked'],
    ['transfer-encoding : chunked'],
  ]
  await attack(scene, async () => {
    for (const lines of pairs) {
      const socket = await open(t, scene)
      const said = heard(socket)
      socket.write(`${headOf(scene, '/two', ...lines)}0\r\n\r\n${inner}`)
      const text = await said
      assert.match(text, /^HTTP\/1\.1 4\d\d /, lines.join())
      assert.equal(text.split('HTTP/1.1').length, 2, `${lines.join()} was answered more than once`)
    }
    assert.deepEqual(readdirSync(attacker.folder), [])
  })
})

test('bodies that are announced and never come hold nothing but their connection', async (t) => {
  const scene = await openScene(t)
  const { attacker, keeper } = scene
  const { staging } = layout(keeper.dataDir).server(attacker.serverId)
  await attack(scene, async () => {
    const sockets: Socket[] = []
    for (let index = 0; index < sized(60, 400); index++) {
      const socket = await open(t, scene)
      sockets.push(socket)
      socket.write(headOf(scene, `/never-${index}`, 'expect: 100-continue', 'content-length: 1000000'))
      assert.match(await heard(socket, /\r\n\r\n/), /^HTTP\/1\.1 (100|4\d\d) /)
    }
    assert.equal((await attacker.put('/kept', 'kept')).status, 201)
    for (const socket of sockets) socket.destroy()
    await until(async () => readdirSync(staging).length === 0)
    assert.deepEqual(readdirSync(attacker.folder), ['kept'])
    const { body } = await attacker.call('GET', `/files/${attacker.serverId}/usage`)
    assert.equal(body.reservedBytes, 0)
  })
  await keeper.kill()
  await keeper.start()
  assert.deepEqual(readdirSync(attacker.folder), ['kept'])
})
