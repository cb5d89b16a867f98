// A real agent behind a real port for the tests of this folder, and links for it.
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { pino } from 'pino'
import { until as untilTrue } from '../../../test/support/until.ts'
import type { AgentFact } from '../../contract/agent.ts'
import { createHttpServer } from '../../http/server.ts'
import { createSignedLinks, type LinkPurpose } from '../../http/signed-links.ts'
import { newId } from '../../kit/ids.ts'
import { type AgentDeps, createAgent } from '../agent.ts'
import { makeTree } from '../files/trees.testing.ts'
import { layout } from '../layout.ts'

export const serverId = 'srv_test'
const MINUTE_MS = 60_000

export async function startAgent(t: TestContext, dataDir = makeTree(t), more: Partial<AgentDeps> = {}) {
  const folders = layout(dataDir).server(serverId)
  const linksKey = randomBytes(32)
  let skew = 0
  const clock = { now: () => Date.now() + skew }
  const links = createSignedLinks(linksKey, clock)
  const boot = async (port: number) => {
    const agent = createAgent({
      dataDir,
      trashKeepMs: 24 * 60 * MINUTE_MS,
      linksKey,
      clock,
      log: pino({ level: 'silent' }),
      ...more,
    })
    await agent.servers.create({ serverId })
    const app = createHttpServer({ logger: pino({ level: 'silent' }), trustedProxies: [], https: false })
    await app.register(agent.routes)
    app.route({
      method: ['GET', 'HEAD', 'PUT'],
      url: '/content/:link',
      handler: (request, reply) =>
        agent.forward(
          request.method === 'PUT' ? 'write-content' : 'read-content',
          (request.params as { link: string }).link,
          request,
          reply,
        ),
    })
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', (_request, _payload, done) => done(null, undefined))
    await agent.start()
    await app.listen({ host: '127.0.0.1', port })
    return { agent, app, port: (app.server.address() as AddressInfo).port }
  }
  let running = await boot(0)
  const stop = async () => {
    await running.app.close()
    await running.agent.stop()
  }
  t.after(stop)

  async function sign(purpose: LinkPurpose, detail: Record<string, string | number | boolean | null>, more = {}) {
    const grant = { serverId, tokenId: 'tok_test', tokenExpiresAt: null, requestId: 'req_test', detail, ...more }
    // Also what no link of this purpose holds.
    return await links.sign(purpose, grant as never, 15 * MINUTE_MS)
  }

  const base = () => `http://127.0.0.1:${running.port}`
  return {
    folders,
    dataDir,
    get agent() {
      return running.agent
    },
    get port() {
      return running.port
    },
    base,
    sign,
    async uploadUrl(maxBytes = 1024 ** 3, more = {}) {
      return `${base()}/v1/game/uploads/${await sign('upload', { uploadId: newId('upl'), maxBytes }, more)}`
    },
    async downloadUrl(path: string, format = 'raw', more = {}) {
      return `${base()}/v1/game/downloads/${await sign('download', { path, format }, more)}`
    },
    async contentUrl(
      purpose: 'read-content' | 'write-content',
      detail: Record<string, string | number | boolean | null>,
    ) {
      return `${base()}/content/${await sign(purpose, detail)}`
    },
    /** From now on it is so much later. */
    pass(ms: number) {
      skew += ms
    },
    at: (path: string) => join(folders.files, path),
    read: (path: string) => readFileSync(join(folders.files, path), 'utf8'),
    has: (path: string) => existsSync(join(folders.files, path)),
    tree: () => readdirSync(folders.files, { recursive: true, encoding: 'utf8' }).sort(),
    staged: () => readdirSync(folders.staging),
    facts: (): Promise<AgentFact[]> => running.agent.facts.read({ limit: 1000, waitMs: 0 }),
    /** On the same port, so that a client finds it again. */
    async restart() {
      const { port } = running
      await stop()
      running = await boot(port)
    },
  }
}

export type TestAgent = Awaited<ReturnType<typeof startAgent>>

/** `files` by name, as a browser sends them. */
export function formOf(files: Record<string, string | Uint8Array<ArrayBuffer>>): FormData {
  const form = new FormData()
  for (const [name, content] of Object.entries(files)) form.append('files', new Blob([content]), name)
  return form
}

export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  await untilTrue(async () => condition())
}
