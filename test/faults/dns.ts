// Kills the service with SIGKILL at random instants while subdomains are made, moved and deleted, starts it again, and
// compares: in the end DNS holds what the database says, nothing else of ours, and what others put there.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Subdomain } from '../../src/contract/subdomains.ts'
import { createZoneFiles } from '../../src/dns/embedded/zonefile.ts'
import { createPowerDns } from '../../src/dns/powerdns.ts'
import type { Endpoint } from '../../src/dns/provider.ts'
import type { RecordSet } from '../../src/dns/records.ts'
import { askAuthority } from '../../src/dns/resolve.ts'
import { createClient, isApiError } from '../../src/sdk/index.ts'
import { freePort, temporaryDirectory } from '../support/daemons.ts'
import { startPowerDns } from '../support/powerdns.ts'
import { type ServiceProcess, spawnService } from '../support/process.ts'
import { until } from '../support/until.ts'

const ZONE = 'play.test'
const THEIRS = { name: `theirs.${ZONE}`, type: 'A', ttl: 60, records: [{ address: '198.51.100.9' }] } as const
const SERVERS = 3
const NAMES = 8
const MOST_ANSWERS = 12
const MOST_MS = 60

interface Provider {
  zone: object
  env: Record<string, string>
  dns: Endpoint
  /** Everything that is in the zone now. */
  list(): Promise<RecordSet[]>
  stop(): Promise<void>
}

interface World {
  env: Record<string, string>
  token: string
  servers: string[]
  /** Created with an answer, and no deletion was asked for since. */
  promised: Set<string>
  /** A deletion was asked for: by another worker perhaps before the creation was answered, as lists show it by then. */
  unwanted: Set<string>
  /** Deleted with a 204. */
  gone: Set<string>
}

export async function run(
  rounds: number,
  provider: 'embedded' | 'powerdns' = 'embedded',
  say: (line: string) => void = () => {},
  seed = 1,
): Promise<void> {
  const directory = temporaryDirectory('faults-dns')
  const behind = provider === 'embedded' ? await embedded(directory.path) : await powerDns()
  const token = `gk_admin_${randomBytes(32).toString('hex')}`
  const env = {
    GAMEKEEPER_DATA_DIR: directory.path,
    GAMEKEEPER_ADMIN_TOKEN: token,
    GAMEKEEPER_RATE_LIMIT: '0',
    GAMEKEEPER_ZONES: JSON.stringify([{ zone: ZONE, target: '203.0.113.7', ...behind.zone }]),
    ...behind.env,
  }
  const world: World = { env, token, servers: [], promised: new Set(), unwanted: new Set(), gone: new Set() }
  const random = randomFrom(seed)
  try {
    for (let round = 1; round <= rounds; round++) {
      const answered = await killOnce(world, random)
      say(`round ${round} of ${rounds}: killed after ${answered} answers`)
      if (round % 10 === 0 || round === rounds) say(await inspect(world, behind))
    }
  } finally {
    await behind.stop()
    directory.remove()
  }
}

/** Answers how many requests were answered before the end. */
async function killOnce(world: World, random: () => number): Promise<number> {
  const service = await spawnService(world.env)
  const client = clientOf(world, service)
  while (world.servers.length < SERVERS) {
    world.servers.push((await client.servers.create({ name: 'Castle', game: 'minecraft-java', port: 25565 })).id)
  }
  const enough = Math.floor(random() * MOST_ANSWERS)
  const reached = Promise.withResolvers<void>()
  let answered = 0
  const work = workers(client, world, random, () => {
    if (answered++ >= enough) reached.resolve()
  })
  await reached.promise
  await delay(random() * MOST_MS)
  await service.kill('SIGKILL')
  await work
  return answered
}

/** Several at once, each until the service is gone. */
async function workers(
  client: ReturnType<typeof clientOf>,
  world: World,
  random: () => number,
  onAnswer: () => void,
): Promise<void> {
  const untilKilled = async () => {
    for (;;) {
      try {
        await change(client, world, random)
        onAnswer()
      } catch (error) {
        if (!isRefusal(error)) return
      }
    }
  }
  await Promise.all([untilKilled(), untilKilled(), untilKilled()])
}

/** The service has said no, as it may; anything else is its end. */
const isRefusal = (error: unknown) => isApiError(error) && error.status < 500

async function change(client: ReturnType<typeof clientOf>, world: World, random: () => number): Promise<void> {
  const serverId = world.servers[Math.floor(random() * world.servers.length)] ?? ''
  const dice = random()
  if (dice < 0.15) {
    await client.servers.change(serverId, { port: 20_000 + Math.floor(random() * 10_000) })
  } else if (dice < 0.6) {
    const name = `n${Math.floor(random() * NAMES)}-${world.servers.indexOf(serverId)}`
    const { id } = await client.subdomains.create(serverId, { name, zone: ZONE })
    if (!world.unwanted.has(id)) world.promised.add(id)
  } else {
    const { data } = await client.subdomains.list(serverId)
    const chosen = data[Math.floor(random() * data.length)]
    if (!chosen) return
    world.unwanted.add(chosen.id)
    world.promised.delete(chosen.id)
    if ((await client.subdomains.delete(serverId, chosen.id)) === undefined) world.gone.add(chosen.id)
  }
}

/** Starts it once more, lets it finish, and compares both sides and what was promised. */
async function inspect(world: World, behind: Provider): Promise<string> {
  const service = await spawnService(world.env)
  const client = clientOf(world, service)
  try {
    const all = await until(async () => {
      const rows = (await Promise.all(world.servers.map((id) => client.subdomains.list(id, { limit: 100 })))).flatMap(
        ({ data }) => data,
      )
      return rows.every((row) => row.status === 'active' && row.propagatedAt !== null) && rows
    })
    const ids = new Set(all.map(({ id }) => id))
    for (const id of world.promised) assert.ok(ids.has(id), `${id} was promised and is lost`)
    for (const id of world.gone) assert.ok(!ids.has(id), `${id} was deleted and is back`)
    assert.deepEqual(shown(await behind.list()), expected(all))
    for (const { hostname } of all) {
      const { recordSet } = await askAuthority(behind.dns, hostname, 'A')
      assert.ok(recordSet, `${hostname} is not answered`)
    }
    assert.deepEqual((await client.dns.check()).findings, [])
    return `DNS and database agree on ${all.length} subdomains; ${world.gone.size} deleted so far`
  } finally {
    await service.kill('SIGKILL')
  }
}

function expected(all: Subdomain[]): string[] {
  const lines = all.flatMap(({ id, hostname, records }) => [
    ...records.map(({ name, type, values }) => `${name} ${type} ${values.join()}`),
    `_gamekeeper.${hostname} TXT ${id}`,
  ])
  return [...lines, `${THEIRS.name} A ${THEIRS.records[0].address}`].sort()
}

/** A marker stands for the subdomain that it names. What belongs to the zone itself is left out. */
function shown(sets: RecordSet[]): string[] {
  return sets
    .filter(({ type }) => type !== 'SOA' && type !== 'NS')
    .map((set) => {
      const values = set.records.map((record) => Object.values(record).join(' ')).join()
      return `${set.name} ${set.type} ${set.type === 'TXT' ? /subdomain=(\S+)/.exec(values)?.[1] : values}`
    })
    .sort()
}

async function embedded(dataDir: string): Promise<Provider> {
  const store = createZoneFiles(`${dataDir}/dns`)
  await store.save({ zone: ZONE, serial: 1, recordSets: [{ ...THEIRS, records: [...THEIRS.records] }] })
  const port = await freePort()
  return {
    zone: { provider: 'embedded' },
    env: { GAMEKEEPER_DNS_HOST: '127.0.0.1', GAMEKEEPER_DNS_PORT: String(port) },
    dns: { host: '127.0.0.1', port },
    list: async () => (await store.load(ZONE))?.recordSets ?? [],
    stop: async () => {},
  }
}

async function powerDns(): Promise<Provider> {
  const pdns = await startPowerDns()
  const records = [{ content: THEIRS.records[0].address, disabled: false }]
  await pdns.createZone(ZONE, [{ name: `${THEIRS.name}.`, type: 'A', ttl: THEIRS.ttl, records }])
  const zone = { provider: 'powerdns', url: pdns.url, apiKey: { env: 'PDNS_KEY' }, nameServers: [pdns.dns] }
  const provider = createPowerDns({ url: pdns.url, apiKey: pdns.apiKey })
  return {
    zone,
    env: { PDNS_KEY: pdns.apiKey },
    dns: pdns.dns,
    list: async () => (await provider.list(ZONE)).recordSets,
    stop: pdns.stop,
  }
}

const clientOf = (world: World, service: ServiceProcess) =>
  createClient({ baseUrl: service.url, token: world.token, retries: 0 })

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
