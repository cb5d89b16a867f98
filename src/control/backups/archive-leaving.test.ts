// Clients that leave while their part of an archive is being prepared, at every moment of that.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { createWorld } from '../../../test/support/backups.ts'
import { startTestService } from '../../../test/support/service.ts'
import { ARCHIVES_BEGUN } from '../../contract/fixed-limits.ts'

const SERVERS = 4

test('clients that leave before their part of an archive is measured cost nobody else anything', async () => {
  await using service = await startTestService()
  const world = createWorld(service)
  const { hostname, port } = new URL(service.url)
  for (let count = 0; count < SERVERS; count++) {
    const server = await world.server({ a: 'a' })
    const { id } = await world.backup(server)
    const target = `/v1/game/backups/${server}/${id}/download?format=tar.gz`
    const headers = `host: ${hostname}\r\nauthorization: Bearer ${service.adminToken}\r\nrange: bytes=1-2`
    await Promise.all(
      Array.from({ length: ARCHIVES_BEGUN.burst }, async (_, turns) => {
        const socket = connect(Number(port), hostname)
        await once(socket, 'connect')
        socket.write(`GET ${target} HTTP/1.1\r\n${headers}\r\n\r\n`)
        for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
        socket.destroy()
      }),
    )
  }
  assert.equal((await fetch(`${service.url}/healthz`)).status, 200)
})
