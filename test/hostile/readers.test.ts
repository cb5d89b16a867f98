// Downloads that nobody reads: one after the other on one connection without waiting for an answer, and one on each of many
// connections. Each has a file open, and none takes what others need.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, readdirSync, truncateSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { killLeftovers } from '../support/process.ts'
import { attack } from './support/attack.ts'
import { openScene, type Scene } from './support/scene.ts'
import { sized } from './support/size.ts'

after(killLeftovers)

/** More than the buffers of both sides take, so that an answer waits for its reader. */
const LARGE_BYTES = 200_000_000
const DESCRIPTORS = 1024

const descriptorsOf = (pid: number) => readdirSync(`/proc/${pid}/fd`).length

function plantLarge({ attacker }: Scene): void {
  mkdirSync(join(attacker.folder, 'room'))
  for (const name of ['large', 'room/large']) {
    writeFileSync(join(attacker.folder, name), 'here')
    truncateSync(join(attacker.folder, name), LARGE_BYTES)
  }
}

async function downloadLinks({ attacker }: Scene): Promise<string[]> {
  const files = `/files/${attacker.serverId}/download`
  const asked = [`${files}?path=/large`, `${files}?path=/room&format=tar`, `${files}?path=/room&format=zip`]
  const links: string[] = []
  for (const path of asked) links.push(new URL((await attacker.call('GET', path)).body.url).pathname)
  return links
}

/** Sends the requests and reads nothing. */
async function stall(t: TestContext, scene: Scene, requests: string, from = '127.0.0.1'): Promise<Socket> {
  const { hostname, port } = new URL(scene.keeper.url)
  const socket = connect({ port: Number(port), host: hostname, localAddress: from })
  t.after(() => socket.destroy())
  socket.on('error', () => {}).pause()
  await once(socket, 'connect')
  socket.write(requests)
  return socket
}

const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nhost: x\r\n${headers}\r\n`

test('downloads that are asked for without waiting for the first take one descriptor', async (t) => {
  const scene = await openScene(t, { under: ['prlimit', `--nofile=${DESCRIPTORS}:${DESCRIPTORS}`] })
  const { attacker, keeper } = scene
  plantLarge(scene)
  const path = `/v1/game/files/${attacker.serverId}/content?path=/large`
  const one = get(path, `authorization: Bearer ${attacker.token}\r\n`)
  await attack(scene, async () => {
    const before = descriptorsOf(keeper.pid)
    const connections = sized(8, 40)
    for (let index = 0; index < connections; index++) {
      // As many as may wait, and more than may.
      await stall(t, scene, one.repeat(index % 2 === 0 ? 60 : 250))
      await attacker.call('GET', '/servers')
      const taken = descriptorsOf(keeper.pid) - before
      assert.ok(taken < 4 * connections, `${index + 1} connections took ${taken} descriptors`)
    }
  })
})

test('downloads on hundreds of connections that nobody reads leave descriptors and connections to others', {
  timeout: 300_000,
}, async (t) => {
  const scene = await openScene(t, { under: ['prlimit', `--nofile=${DESCRIPTORS}:${DESCRIPTORS}`] })
  const { keeper } = scene
  plantLarge(scene)
  const links = await downloadLinks(scene)
  await attack(scene, async () => {
    for (let index = 0; index < 480; index++) {
      const from = `127.0.1.${1 + (index % 10)}`
      const link = links[index % 8 === 0 ? 1 + ((index % 3) % 2) : 0]
      await stall(t, scene, get(link ?? ''), from)
    }
    assert.equal((await scene.call('GET', '/servers')).status, 200)
    const taken = descriptorsOf(keeper.pid)
    assert.ok(taken < 0.85 * DESCRIPTORS, `${taken} of ${DESCRIPTORS} descriptors are taken`)
    scene.say(`${taken} of ${DESCRIPTORS} descriptors were taken`)
  })
})
