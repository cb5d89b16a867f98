// Bodies in frames that no client would send: chunk extensions without end, two lengths at once, and bodies
// that are announced and never come.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
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

const headOf = (scene: Scene, path: string, ...lines: string[]) =>
  [
    `PUT /v1/game/files/${scene.attacker.serverId}/content?path=${path} HTTP/1.1`,
    'host: x',
    `authorization: Bearer ${scene.attacker.token}`,
    ...lines,
    '',
    '',
  ].join('\r\n')

/** Written as fast as the service takes it; ends early where it does not. */
async function send(socket: Socket, piece: string, times: number): Promise<void> {
  for (let index = 0; index < times && socket.writable; index++)
    if (!socket.write(piece)) await Promise.race([once(socket, 'drain'), once(socket, 'close')])
}

test('chunk extensions without end are refused', async (t) => {
  const scene = await openScene(t)
  const { attacker } = scene
  await attack(scene, async () => {
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
