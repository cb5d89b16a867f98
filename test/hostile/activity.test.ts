// A tenant fills its activity and its queue with what it may send, and then reads it slowly, twenty times at once.
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import pg from 'pg'
import type { Keeper } from '../faults/history/keeper.ts'
import { appendOldEntries } from '../support/old-entries.ts'
import { killLeftovers } from '../support/process.ts'
import { attack } from './support/attack.ts'
import { openScene, type Tenant } from './support/scene.ts'
import { sized } from './support/size.ts'

after(killLeftovers)

const MIB = 1024 ** 2
const READERS = sized(8, 20)

/** A reader that asks and never reads. */
async function stalled({ url, token, serverId }: Tenant, headers: Record<string, string>): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname).on('error', () => {})
  const lines = Object.entries({ host: hostname, authorization: `Bearer ${token}`, ...headers })
  const head = lines.map(([name, value]) => `${name}: ${value}`).join('\r\n')
  socket.write(`GET /v1/game/servers/${serverId}/activity HTTP/1.1\r\n${head}\r\n\r\n`)
  // It has begun to answer.
  await new Promise((resolve) => socket.once('readable', resolve))
  return socket
}

async function databaseBytes({ dataDir, databaseUrl }: Keeper): Promise<number> {
  if (databaseUrl === null) return statSync(join(dataDir, 'gamekeeper.db')).size
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  const { rows } = await client.query('select pg_database_size(current_database()) as bytes')
  await client.end()
  return Number(rows[0].bytes)
}

test('large requests leave small entries, and slow readers of large ones cost no memory', async (t) => {
  const scene = await openScene(t)
  const { keeper, attacker } = scene
  // What an older version would have kept of them.
  const long = Array.from({ length: 5 }, () => 'x'.repeat(199)).join('/')
  const files = Array.from({ length: 1000 }, (_, i) => `${i}/${long}`)
  const [first = ''] = await appendOldEntries(keeper, attacker.serverId, sized(60, 220), () => ({ files }))
  const before = await databaseBytes(keeper)
  const readers: Socket[] = []
  t.after(() => {
    for (const reader of readers) reader.destroy()
  })
  await attack(scene, async () => {
    for (let i = 0; i < sized(8, 220); i++) {
      const { status, text } = await attacker.call('POST', `/files/${attacker.serverId}/pack`, { body: { files } })
      assert.ok([202, 409, 429].includes(status), text)
    }
    for (let i = 0; i < READERS; i++) {
      readers.push(await stalled(attacker, { accept: 'text/event-stream', 'last-event-id': first }))
      readers.push(await stalled(attacker, { accept: 'application/x-ndjson' }))
    }
  })
  const grown = (await databaseBytes(keeper)) - before
  // Each request would leave almost 2 MiB if nothing were cut.
  assert.ok(grown < sized(6, 24) * MIB, `the database has grown by ${grown} bytes`)
  scene.say(`the database has grown by ${grown} bytes`)
})
