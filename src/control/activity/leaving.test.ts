// What is read for an answer is read no further when its client has left.
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { request as httpRequest } from 'node:http'
import type { Socket } from 'node:net'
import { after, before, mock, type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type CompiledQuery, DefaultQueryExecutor } from 'kysely'
import { onBothEngines } from '../../../test/support/engines.ts'
import { appendOldEntries } from '../../../test/support/old-entries.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'

/** Several batches of every reader. */
const ENTRIES = 1000

onBothEngines('a client that leaves', (engine) => {
  let service: TestService
  let serverId = ''
  before(async () => {
    service = await startTestService({ engine })
    serverId = (await service.createServer()).id
    await appendOldEntries(service, serverId, ENTRIES, (index) => ({ index }))
  })
  after(() => service.stop())

  /** Counts what is read of the activity; `beforeReading` is awaited each time. */
  function watchReads(t: TestContext) {
    const watch = { reads: 0, beforeReading: async (_read: number) => {} }
    const { executeQuery } = DefaultQueryExecutor.prototype
    const watched = mock.method(
      DefaultQueryExecutor.prototype,
      'executeQuery',
      async function (this: DefaultQueryExecutor, query: CompiledQuery) {
        if (/from "activity" where "chain"/.test(query.sql)) await watch.beforeReading(++watch.reads)
        return await executeQuery.call(this, query)
      },
    )
    t.after(() => watched.mock.restore())
    return watch
  }

  async function readWhole(path: string, accept: string): Promise<void> {
    const { status, text } = await service.call('GET', path, { headers: { accept } })
    assert.equal(status, 200, text.slice(0, 200))
  }

  /** Asks, and leaves at the second read: resolves when the service has noticed. */
  async function leaveAtSecondRead(path: string, accept: string, watch: ReturnType<typeof watchReads>): Promise<void> {
    const accepted = new Set<Socket>()
    const onSocket = (message: unknown) => accepted.add((message as { socket: Socket }).socket)
    subscribe('net.server.socket', onSocket)
    const headers = { accept, authorization: `Bearer ${service.adminToken}` }
    const client = httpRequest(`${service.url}/v1/game${path}`, { headers, agent: false })
    client.on('error', () => {}).on('response', (response) => response.on('error', () => {}).resume())
    const { promise: left, resolve } = Promise.withResolvers<void>()
    watch.beforeReading = async (read) => {
      if (read !== 2) return
      const closed = [...accepted].filter(({ remotePort }) => remotePort === client.socket?.localPort)
      client.destroy()
      // Not by `once` of node:events, which fails where the connection is reset.
      await Promise.all(closed.map((socket) => new Promise((resolve) => socket.once('close', resolve))))
      await nextTurn()
      resolve()
    }
    client.end()
    await left
    unsubscribe('net.server.socket', onSocket)
  }

  for (const [what, path, accept] of [
    ['an export of the activity', 'activity', 'application/x-ndjson'],
    ['a verification', 'activity/verify', 'application/json'],
  ] as const)
    test(`${what} ends with it`, async (t) => {
      const address = `/servers/${serverId}/${path}`
      const watch = watchReads(t)
      await readWhole(address, accept)
      const whole = watch.reads
      assert.ok(whole > 3, `${whole} reads`)
      watch.reads = 0
      await leaveAtSecondRead(address, accept, watch)
      // A whole one afterwards takes as long as the rest of the first would have taken.
      await readWhole(address, accept)
      assert.ok(watch.reads <= whole + 3, `${watch.reads} reads, where a whole one takes ${whole}`)
    })
})
