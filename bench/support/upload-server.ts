// A child of the uploads benchmark: the agent's own routes, or a bare node:http server that pipes each body to a file.
// Says its port and, for the agent, its key.
import { randomBytes } from 'node:crypto'
import { createWriteStream, mkdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { pino } from 'pino'
import { createAgent } from '../../src/agent/agent.ts'
import { createHttpServer } from '../../src/http/server.ts'

const [kind = '', dataDir = '', serverId = ''] = process.argv.slice(2)

async function startAgent(): Promise<void> {
  const linksKey = randomBytes(32)
  const log = pino({ level: 'error' })
  const agent = createAgent({ dataDir, trashKeepMs: 0, linksKey, clock: { now: Date.now }, log })
  await agent.servers.create({ serverId })
  const app = createHttpServer({ logger: log, trustedProxies: [], https: false })
  await app.register(agent.routes)
  await agent.start()
  await app.listen({ host: '127.0.0.1', port: 0 })
  process.send?.({ port: (app.server.address() as AddressInfo).port, key: linksKey.toString('hex') })
}

function startBare(): void {
  mkdirSync(dataDir, { recursive: true })
  let count = 0
  const server = createServer(async (request, response) => {
    await pipeline(request, createWriteStream(join(dataDir, `body-${count++}`)))
    response.end()
  })
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
}

if (kind === 'agent') await startAgent()
else startBare()
