// The service is killed in the middle of writes. Afterwards every change that was answered must be there with its
// activity entry, no entry may be there without its change, and the chain must verify.
import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ServiceProcess, spawnService } from '../support/process.ts'

interface Entry {
  serverId: string | null
  event: string
  requestId: string | null
  properties: { tokenId?: string; changes?: { port?: { to: number } } }
}
interface Server {
  id: string
  port: number | null
}

/** What was answered, and so has been promised. */
interface Promised {
  created: Set<string>
  /** The newest port of each server that was answered, and those that were asked for after it. */
  ports: Map<string, { answered: number; pending: Set<number> }>
  tokens: Set<string>
  requests: Set<string>
  /** Never the same twice: a change that changes nothing has no entry. */
  nextPort: number
}

const WRITERS = 6
const SERVERS_MAX = 40

export async function killService(rounds: number, say: (line: string) => void): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-faults-'))
  const token = `gk_admin_${randomBytes(32).toString('hex')}`
  const env = { GAMEKEEPER_DATA_DIR: dataDir, GAMEKEEPER_ADMIN_TOKEN: token, GAMEKEEPER_RATE_LIMIT: '0' }
  const promised: Promised = {
    created: new Set(),
    ports: new Map(),
    tokens: new Set(),
    requests: new Set(),
    nextPort: 1,
  }
  let service = await spawnService(env)
  try {
    for (let round = 1; round <= rounds; round++) {
      const answered = await writeUntilKilled(service, token, promised)
      service = await spawnService(env)
      await check(service.url, token, promised)
      say(`round ${round} of ${rounds}: killed after ${answered} answers, nothing lost, nothing made up`)
    }
  } finally {
    await service.kill('SIGKILL')
    await rm(dataDir, { recursive: true, force: true })
  }
}

async function writeUntilKilled(service: ServiceProcess, token: string, promised: Promised): Promise<number> {
  let answered = 0
  const killAfter = randomInt(5, 60)
  let dead = false
  void service.exited.then(() => {
    dead = true
  })
  const send = async (method: string, path: string, body: object) => {
    const reply = await call(service.url, token, method, path, body)
    promised.requests.add(reply.requestId)
    if (++answered === killAfter) service.child.kill('SIGKILL')
    return reply.body as { id: string }
  }
  const writer = async (index: number) => {
    for (let i = 0; !dead; i++) {
      try {
        if (promised.created.size < SERVERS_MAX && i % 5 === 0) {
          const { id } = await send('POST', '/servers', { name: `writer ${index}` })
          promised.created.add(id)
        } else if (i % 7 === 1) {
          promised.tokens.add((await send('POST', '/tokens', { name: 'x', scopes: ['servers:read'], servers: '*' })).id)
        } else {
          await changePort(send, promised, index)
        }
      } catch {
        // The service died under this request: it may have happened or not.
        if (service.child.killed) return
        throw new Error(`a request failed while the service lived: ${service.output()}`)
      }
    }
  }
  await Promise.all(Array.from({ length: WRITERS }, (_, index) => writer(index)))
  assert.equal(await service.exited, 'SIGKILL')
  return answered
}

type Send = (method: string, path: string, body: object) => Promise<{ id: string }>

/** Each writer has servers of its own, so that the order of the changes to one is known. */
async function changePort(send: Send, promised: Promised, index: number): Promise<void> {
  const id = [...promised.created].filter((_, i) => i % WRITERS === index).at(randomInt(100) % 2 === 0 ? 0 : -1)
  if (!id)
    return void (await send('POST', '/tokens', { name: 'x', scopes: ['servers:read'], servers: '*' }).then((made) =>
      promised.tokens.add(made.id),
    ))
  const port = promised.nextPort++
  const known = promised.ports.get(id) ?? { answered: 0, pending: new Set<number>() }
  promised.ports.set(id, known)
  known.pending.add(port)
  await send('PATCH', `/servers/${id}`, { port })
  known.answered = port
  known.pending.clear()
}

async function check(url: string, token: string, promised: Promised): Promise<void> {
  const verified = (await call(url, token, 'GET', '/activity/verify')).body as { intact: boolean }
  assert.equal(verified.intact, true, JSON.stringify(verified))
  const entries = await readAll<Entry>(url, token, '/activity')
  const servers = await readAll<Server>(url, token, '/servers')
  const tokens = await readAll<{ id: string }>(url, token, '/tokens')
  const of = (event: string) => entries.filter((entry) => entry.event === event)

  same(
    servers.map((server) => server.id),
    of('server.created').map((entry) => entry.serverId),
    'servers and entries',
  )
  same(
    tokens.map((one) => one.id),
    of('token.created').map((entry) => entry.properties.tokenId),
    'tokens and entries',
  )
  const present = new Set(servers.map((server) => server.id))
  for (const id of promised.created) assert.ok(present.has(id), `the server ${id} was answered and is gone`)
  const kept = new Set(tokens.map((one) => one.id))
  for (const id of promised.tokens) assert.ok(kept.has(id), `the token ${id} was answered and is gone`)

  for (const { id, port } of servers) {
    const last = of('server.changed').find((entry) => entry.serverId === id)
    assert.equal(port, last?.properties.changes?.port?.to ?? null, `the port of ${id} and its newest entry`)
    const known = promised.ports.get(id)
    if (known?.answered)
      assert.ok(port === known.answered || known.pending.has(port ?? 0), `the port of ${id} was answered and is gone`)
    if (known) promised.ports.set(id, { answered: port ?? 0, pending: new Set() })
  }
  const recorded = new Set(entries.map((entry) => entry.requestId))
  for (const requestId of promised.requests)
    assert.ok(recorded.has(requestId), `${requestId} was answered and has no entry`)
}

function same(left: (string | null | undefined)[], right: (string | null | undefined)[], what: string): void {
  assert.deepEqual(left.map(String).sort(), right.map(String).sort(), what)
}

async function readAll<T>(url: string, token: string, path: string): Promise<T[]> {
  const found: T[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const reply = await call(url, token, 'GET', `${path}?limit=100${cursor ? `&cursor=${cursor}` : ''}`)
    const page = reply.body as { data: T[]; nextCursor: string | null }
    found.push(...page.data)
    cursor = page.nextCursor
  }
  return found
}

async function call(url: string, token: string, method: string, path: string, body?: object) {
  const response = await fetch(`${url}/v1/game${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  const answer = await response.json()
  assert.ok(response.status < 400, `${method} ${path}: ${response.status}`)
  return { requestId: response.headers.get('x-request-id') ?? '', body: answer as unknown }
}
