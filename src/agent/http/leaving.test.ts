// What is done for an answer ends when nobody waits for the answer any more.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import type { FastifyReply } from 'fastify'
import { pino } from 'pino'
import { createHttpServer } from '../../http/server.ts'
import { createSignedLinks } from '../../http/signed-links.ts'
import { testAgent } from '../backups/backups.testing.ts'
import { createTransferShares, type Shares } from '../fair-shares.ts'
import { openDescriptors } from '../files/trees.testing.ts'
import { startAgent, until } from './agent.testing.ts'
import { createBackupDownloads } from './backup-downloads.ts'
import { createLinkDoor } from './link-door.ts'
import { createLinkRevocations } from './revocations.ts'

const serverId = 'srv_a'

/** Downloads of a real backup at a real port, with a hand on the moment in which the archive is opened. */
async function backupPort(t: TestContext) {
  const agent = await testAgent(t)
  writeFileSync(join(agent.filesOf(serverId), 'world'), randomBytes(4 * 1024 * 1024))
  const { backupId } = await agent.create(serverId)
  const opened: Readable[] = []
  let beforeOpening = async (_reply: FastifyReply) => {}
  let current: FastifyReply
  const clock = { now: () => Date.now() }
  const links = createSignedLinks(Buffer.alloc(32, 1), clock)
  const revocations = createLinkRevocations(join(agent.dataDir, 'revoked'), clock)
  const shares = createTransferShares(100)
  let transfers = 0
  const counted: Shares = {
    async run(...args) {
      transfers++
      try {
        return await shares.run(...args)
      } finally {
        transfers--
      }
    },
  }
  const serve = createBackupDownloads({
    backups: {
      ...agent.backups,
      async download(request) {
        await beforeOpening(current)
        const download = await agent.backups.download(request)
        opened.push(download.stream)
        return download
      },
    },
    door: createLinkDoor({ links, revocations, transfers: counted, isHere: () => true, clock }),
  })
  const app = createHttpServer({ logger: pino({ level: 'silent' }), trustedProxies: [], https: false })
  app.get('/:link', (request, reply) => {
    current = reply
    return serve((request.params as { link: string }).link, request, reply)
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  t.after(() => app.close())
  const detail = { backupId, format: 'tar.zst' as const, name: 'world', createdAt: Date.now() }
  const link = await links.sign(
    'download-backup',
    { serverId, tokenId: 'tok_a', tokenExpiresAt: null, requestId: 'req_a', detail },
    60_000,
  )
  return {
    url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/${link}`,
    opened,
    transfers: () => transfers,
    onOpening(work: (reply: FastifyReply) => Promise<void>) {
      beforeOpening = work
    },
  }
}

test('a ranged download is not measured to its end after the client has left', async (t) => {
  const { url, opened, onOpening } = await backupPort(t)
  const client = httpRequest(url, { headers: { range: 'bytes=100-' } })
  client.on('error', () => {})
  const { promise: left, resolve } = Promise.withResolvers<void>()
  onOpening(async ({ raw }) => {
    const closed = once(raw, 'close')
    client.destroy()
    await closed
    resolve()
  })
  client.end()
  await left
  await until(() => opened[0]?.closed === true)
  assert.equal(opened[0]?.readableEnded, false, 'the archive was made to its end for nobody')
  onOpening(async () => {})
  const whole = await fetch(url, { headers: { range: 'bytes=100-199' } })
  assert.deepEqual([whole.status, (await whole.bytes()).length], [206, 100], 'one who stays gets the range')
})

test('parts of an archive that are asked for at once are measured once, by one who stays', async (t) => {
  const { url, opened, transfers, onOpening } = await backupPort(t)
  const first = httpRequest(url, { headers: { range: 'bytes=100-' } })
  first.on('error', () => {})
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const { promise: left, resolve: leave } = Promise.withResolvers<void>()
  onOpening(async ({ raw }) => {
    onOpening(async () => {})
    begin()
    await left
    const closed = once(raw, 'close')
    first.destroy()
    await closed
  })
  first.end()
  await begun
  const leaver = httpRequest(url, { headers: { range: 'bytes=100-199' } })
  leaver.on('error', () => {}).end()
  await until(() => transfers() === 2)
  leaver.destroy()
  // One that has left does not wait for the measurement of another.
  await until(() => transfers() === 1)
  const part = () => fetch(url, { headers: { range: 'bytes=100-199' } }).then(({ status }) => status)
  const parts = [part(), part(), part()]
  leave()
  assert.deepEqual(await Promise.all(parts), [206, 206, 206])
  // That of the one who left, one measurement, and the three parts.
  assert.equal(opened.length, 5)
})

test('an archive of a folder is not made after the client has left', async (t) => {
  const agent = await startAgent(t)
  writeFileSync(agent.at('world'), randomBytes(32 * 1024 * 1024))
  const before = openFiles()
  const client = httpRequest(await agent.downloadUrl('/', 'zip'))
  client.on('error', () => {})
  client.end()
  const [response] = await once(client, 'response')
  await once(response, 'readable')
  response.on('error', () => {}).destroy()
  await until(() => openFiles() === before)
})

function openFiles(): number {
  return openDescriptors().filter((path) => path.endsWith('/world')).length
}
