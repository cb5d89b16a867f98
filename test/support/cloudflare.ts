// A stand-in for Cloudflare's API, after its published documentation: tokens, zones by name, paging, batches that are
// one transaction in the order deletes, patches, puts, posts, its error codes, and a lock-out once too many requests came.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { listeningPort } from './daemons.ts'

export interface StoredRecord {
  id: string
  name: string
  type: string
  content: string
  ttl: number
  proxied: boolean
  data?: { priority: number; weight: number; port: number; target: string }
}

export interface CloudflareStandIn {
  baseUrl: string
  token: string
  /** Every request so far as `METHOD path`. */
  requests: string[]
  records(zone: string): StoredRecord[]
  /** The next request is answered with this status instead. */
  failNext(status: number): void
  /** From now on so many requests pass, and then every one is refused for this long. */
  limit(requests: number, lockSeconds: number): void
  stop(): Promise<void>
}

interface Zone {
  id: string
  name: string
  records: StoredRecord[]
}

class ApiFault extends Error {
  readonly status: number
  readonly code: number
  constructor(status: number, code: number, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

export async function startCloudflare(seed: Record<string, Omit<StoredRecord, 'id'>[]>): Promise<CloudflareStandIn> {
  const token = randomBytes(20).toString('hex')
  const zones: Zone[] = Object.entries(seed).map(([name, records]) => {
    return { id: newId(), name, records: records.map((record) => ({ id: newId(), ...record })) }
  })
  const requests: string[] = []
  let failure: number | null = null
  let rate = { left: Number.POSITIVE_INFINITY, lockSeconds: 300, lockedUntil: 0 }

  const handle = async (
    request: IncomingMessage,
  ): Promise<{ status?: number; result: unknown; result_info?: unknown }> => {
    requests.push(`${request.method} ${request.url}`)
    if (failure !== null) {
      const status = failure
      failure = null
      throw new ApiFault(status, 1000, 'An internal error occurred')
    }
    if (Date.now() < rate.lockedUntil || rate.left-- <= 0) {
      if (Date.now() >= rate.lockedUntil) rate.lockedUntil = Date.now() + rate.lockSeconds * 1000
      throw new ApiFault(429, 971, 'Please wait and consider throttling your request speed')
    }
    authorise(request, token)
    const url = new URL(request.url ?? '/', 'http://stand-in')
    if (url.pathname === '/client/v4/zones') return listZones(zones, url)
    const [, id, batch] = /^\/client\/v4\/zones\/([^/]+)\/dns_records(\/batch)?$/.exec(url.pathname) ?? []
    const zone = zones.find((candidate) => candidate.id === id)
    if (!zone) throw new ApiFault(404, 7003, 'Could not route, perhaps your object identifier is invalid?')
    if (!batch) return page(zone.records, url)
    return { result: runBatch(zone, (await json(request)) as Batch) }
  }

  const server = createServer((request, response) => {
    handle(request).then(
      (answer) => send(response, 200, { success: true, errors: [], messages: [], ...answer }),
      (error: unknown) => {
        const fault = error instanceof ApiFault ? error : new ApiFault(400, 9207, 'Request body is invalid')
        if (fault.status === 429) response.setHeader('retry-after', String(rate.lockSeconds))
        const errors = [{ code: fault.code, message: fault.message }]
        send(response, fault.status, { success: false, errors, messages: [], result: null })
      },
    )
  }).listen(0, '127.0.0.1')
  const port = await listeningPort(server)
  return {
    baseUrl: `http://127.0.0.1:${port}/client/v4`,
    token,
    requests,
    records: (name) => zones.find((zone) => zone.name === name)?.records ?? [],
    failNext(status) {
      failure = status
    },
    limit(left, lockSeconds) {
      rate = { left, lockSeconds, lockedUntil: 0 }
    },
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function newId(): string {
  return randomBytes(16).toString('hex')
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function authorise(request: IncomingMessage, token: string): void {
  const [, sent] = /^Bearer (\S{40,})$/.exec(request.headers.authorization ?? '') ?? []
  if (sent === undefined) throw new ApiFault(400, 6003, 'Invalid request headers')
  if (sent !== token) throw new ApiFault(403, 9109, 'Invalid access token')
}

function listZones(zones: Zone[], url: URL) {
  const found = zones.filter(({ name }) => name === url.searchParams.get('name'))
  return page(
    found.map(({ id, name }) => ({ id, name, name_servers: ['ada.ns.cloudflare.test', 'bob.ns.cloudflare.test'] })),
    url,
  )
}

function page<T>(all: T[], url: URL) {
  const number = Number(url.searchParams.get('page') ?? 1)
  const size = Number(url.searchParams.get('per_page') ?? 100)
  const result = all.slice((number - 1) * size, number * size)
  const counts = { count: result.length, total_count: all.length, total_pages: Math.ceil(all.length / size) }
  return { result, result_info: { page: number, per_page: size, ...counts } }
}

type Sent = Partial<StoredRecord> & { id: string }

interface Batch {
  deletes?: { id: string }[]
  patches?: Sent[]
  puts?: Sent[]
  posts?: Sent[]
}

const BATCH_LIMIT = 200

/** Works on a copy: a fault anywhere leaves the zone as it was. */
function runBatch(zone: Zone, { deletes = [], patches = [], puts = [], posts = [] }: Batch) {
  const size = deletes.length + patches.length + puts.length + posts.length
  if (size > BATCH_LIMIT) throw new ApiFault(400, 81_044, 'Too many operations in a batch')
  const records = new Map(zone.records.map((record) => [record.id, record]))
  const existing = (id: string) => {
    const record = records.get(id)
    if (!record) throw new ApiFault(404, 81_044, 'Record does not exist.')
    return record
  }
  for (const { id } of deletes) records.delete(existing(id).id)
  for (const patch of patches) records.set(patch.id, complete({ ...existing(patch.id), ...patch }))
  for (const put of puts) records.set(existing(put.id).id, complete(put))
  for (const post of posts) {
    const id = newId()
    records.set(id, complete({ ...post, id }))
  }
  checkTogether([...records.values()])
  zone.records = [...records.values()]
  return { deletes, patches, puts, posts }
}

function complete({ id, name, type, content, ttl = 1, proxied = false, data }: Sent): StoredRecord {
  if (!name || !type) throw new ApiFault(400, 9005, 'Content for record is invalid.')
  if (ttl !== 1 && (ttl < 60 || ttl > 86_400)) throw new ApiFault(400, 9021, 'Invalid TTL.')
  if (type === 'SRV') {
    if (!data?.target || data.port === undefined) throw new ApiFault(400, 9101, 'data is a required field.')
    return { id, name, type, content: `${data.weight} ${data.port} ${data.target}`, ttl, proxied: false, data }
  }
  if (content === undefined) throw new ApiFault(400, 9005, 'Content for record is invalid.')
  const stored = type === 'TXT' && !content.startsWith('"') ? `"${content}"` : content
  return { id, name, type, content: stored, ttl, proxied }
}

function checkTogether(records: StoredRecord[]): void {
  const seen = new Set<string>()
  for (const { name, type, content, data } of records) {
    const key = JSON.stringify([name, type, content, data?.priority])
    if (seen.has(key)) throw new ApiFault(400, 81_058, 'An identical record already exists.')
    seen.add(key)
    const rival = type === 'CNAME' && records.some((other) => other.name === name && other.type !== 'CNAME')
    if (rival) throw new ApiFault(400, 81_053, 'An A, AAAA, or CNAME record with that host already exists.')
  }
}
