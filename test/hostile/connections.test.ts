// Connections that only wait, bodies that never end, and few descriptors: whoever works is let in and served all the same.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { killLeftovers } from '../support/process.ts'
import { attack } from './support/attack.ts'
import { openScene, type Scene } from './support/scene.ts'
import { sized } from './support/size.ts'

after(killLeftovers)

interface Held {
  sockets: Socket[]
  open(): number
  close(): void
}

/** Opens connections that say nothing. Those that are refused or cut count as closed. */
async function hold(port: number, count: number, from = '127.0.0.1'): Promise<Held> {
  const open = new Set<Socket>()
  const sockets = Array.from({ length: count }, () => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: from })
    open.add(socket)
    socket
      .on('close', () => open.delete(socket))
      .on('error', () => {})
      .resume()
    return socket
  })
  await Promise.all(
    sockets.map((socket) => Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => {})),
  )
  return { sockets, open: () => open.size, close: () => sockets.forEach((socket) => void socket.destroy()) }
}

const portOf = ({ keeper }: Scene) => Number(new URL(keeper.url).port)

test('connections that say nothing leave room for others, however many there are', async (t) => {
  const scene = await openScene(t, { under: ['prlimit', '--nofile=1024:1024'] })
  await attack(scene, async () => {
    const held = await hold(portOf(scene), sized(1100, 4000))
    t.after(held.close)
    // From elsewhere, so that no bound by address helps.
    const spread = await Promise.all(
      Array.from({ length: 20 }, (_, index) => hold(portOf(scene), 40, `127.0.1.${index + 1}`)),
    )
    t.after(() => spread.forEach(({ close }) => void close()))
    assert.equal((await scene.attacker.call('GET', '/servers')).status, 200)
    scene.say(`${held.open()} of ${held.sockets.length} are open`)
  })
})

test('with few descriptors, connections that wait do not keep backups and restores from working', async (t) => {
  const scene = await openScene(t, { under: ['prlimit', '--nofile=80:80'] })
  await attack(scene, async () => {
    for (const port of [portOf(scene), scene.keeper.dnsPort]) {
      // From an address of their own: those who flood lock out themselves first.
      const held = await hold(port, 60, '127.0.0.9')
      t.after(held.close)
    }
    for (let round = 0; round < sized(3); round++) {
      const reply = await scene.attacker.call('POST', `/backups/${scene.attacker.serverId}`, { body: {} })
      assert.equal(reply.status, 202, reply.text)
    }
  })
})

test('a request that was refused before its body ended is cut, however slowly the body arrives', {
  timeout: 60_000,
}, async (t) => {
  const scene = await openScene(t)
  await attack(scene, async () => {
    const targets = [
      'POST /v1/game/servers',
      'POST /v1/game/nothing',
      'PUT /v1/game/files/x/content?path=/a',
      'PUT /healthz',
    ]
    await Promise.all(
      targets.map(async (target) => {
        const socket = connect(portOf(scene), '127.0.0.1')
        t.after(() => socket.destroy())
        socket.on('error', () => {})
        const head = [
          `${target} HTTP/1.1`,
          'host: x',
          'authorization: Bearer gk_no_no',
          'content-type: application/json',
        ]
        socket.write(`${[...head, 'content-length: 100000'].join('\r\n')}\r\n\r\n{`)
        const [answer] = await once(socket, 'data')
        assert.match(String(answer), /^HTTP\/1\.1 4/)
        const trickle = setInterval(() => socket.write(' '), 100)
        t.after(() => clearInterval(trickle))
        // `once` would fail on the error of a write that came too late.
        await new Promise((resolve) => socket.resume().once('close', resolve))
      }),
    )
  })
})
