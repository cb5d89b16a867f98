// Kills the service with SIGKILL at random instants while games run and are started, stopped and typed to, starts it again, and
// looks: no game has died, no line is lost, the state shown is true, and every power action works.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { copyFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isAlive, type ProcessIdentity } from '../../src/agent/games/process-identity.ts'
import type { RunRecord } from '../../src/agent/games/supervisor/protocol.ts'
import { type Client, type ConsoleLine, createClient } from '../../src/sdk/index.ts'
import { temporaryDirectory } from '../support/daemons.ts'
import { endGames, gameFile } from '../support/games.ts'
import { type ServiceProcess, spawnService } from '../support/process.ts'
import { until } from '../support/until.ts'

const MOST_MS = 150

interface World {
  dataDir: string
  token: string
  servers: string[]
  /** How far the console of each was looked at. */
  seen: Map<string, { line: number; tick: number }>
}

export async function killGames(
  rounds: number,
  say: (line: string) => void = () => {},
  _args: readonly string[] = [],
  games = 3,
): Promise<void> {
  const directory = temporaryDirectory('faults-games')
  const token = `gk_admin_${randomBytes(32).toString('hex')}`
  const env = {
    GAMEKEEPER_DATA_DIR: directory.path,
    GAMEKEEPER_ADMIN_TOKEN: token,
    GAMEKEEPER_RATE_LIMIT: '0',
  }
  const world: World = { dataDir: directory.path, token, servers: [], seen: new Map() }
  let service = await spawnService(env)
  try {
    while (world.servers.length < games) await addGame(world, clientOf(world, service.url))
    for (let round = 1; round <= rounds; round++) {
      const what = await killOnce(world, service, round)
      service = await spawnService(env)
      const lines = await compare(world, service, what)
      say(`round ${round} of ${rounds}: ${what.work} cut short; ${lines} lines, none lost`)
    }
    say(await inspect(world, service))
  } finally {
    await service.kill('SIGKILL')
    endGames(directory.path)
    directory.remove()
  }
}

const clientOf = ({ token }: World, url: string) => createClient({ baseUrl: url, token, retries: 0 })

interface Killed {
  work: string
  busy: string
  /** The games as they were. */
  before: Map<string, ProcessIdentity>
}

/** One of the games is in the middle of something, which differs from round to round; the others are left alone. */
async function killOnce(world: World, service: ServiceProcess, round: number): Promise<Killed> {
  const before = new Map(world.servers.map((serverId) => [serverId, gameOf(world, serverId)]))
  const busy = world.servers[round % world.servers.length] as string
  const work = WORK[round % WORK.length] as (client: Client, serverId: string) => Promise<unknown>
  const underWay = work(clientOf(world, service.url), busy).catch(() => {})
  await delay(Math.random() * MOST_MS)
  await service.kill('SIGKILL')
  await underWay
  for (const [serverId, game] of before)
    if (serverId !== busy) assert.ok(isAlive(game), `round ${round}: ${serverId} has died`)
  return { work: work.name, busy, before }
}

/** Answers how many lines there are. */
async function compare(world: World, service: ServiceProcess, { before, busy, work }: Killed): Promise<number> {
  const client = clientOf(world, service.url)
  // A restart ends with a game that runs, wherever the service died in it; nobody has to help.
  if (work === 'restart') await until(async () => (await client.servers.read(busy)).power.state === 'running')
  for (const serverId of world.servers) await settle(world, client, serverId)
  for (const [serverId, game] of before)
    if (serverId !== busy) assert.deepEqual(gameOf(world, serverId), game, `${serverId} was started again`)
  let lines = 0
  for (const serverId of world.servers) lines += await requireEveryLine(world, client, serverId)
  return lines
}

const WORK = [
  async function command(client: Client, serverId: string) {
    for (let n = 0; ; n++) await client.console.send(serverId, `command ${n}`)
  },
  async function restart(client: Client, serverId: string) {
    for (;;) await client.power.restart(serverId)
  },
  async function stop(client: Client, serverId: string) {
    await client.power.stop(serverId)
  },
  async function kill(client: Client, serverId: string) {
    await client.power.kill(serverId)
  },
  async function start(client: Client, serverId: string) {
    await client.power.kill(serverId)
    for (;;) await client.power.start(serverId)
  },
]

async function addGame(world: World, client: Client): Promise<void> {
  const { id } = await client.servers.create({ name: 'Castle' })
  copyFileSync(gameFile('ticking'), join(world.dataDir, 'servers', id, 'files', 'start'))
  await client.power.start(id)
  world.servers.push(id)
}

/** Whatever it was in the middle of ends; then it is made to run, and obeys. */
async function settle(world: World, client: Client, serverId: string): Promise<void> {
  const stateOf = async () => (await client.servers.read(serverId)).power.state
  await until(async () => ['running', 'stopped'].includes(await stateOf()))
  if ((await stateOf()) === 'stopped') await client.power.start(serverId)
  await until(async () => (await stateOf()) === 'running')
  assert.ok(isAlive(gameOf(world, serverId)), `${serverId} is shown as running, and does not`)
  const words = `are you there ${randomBytes(4).toString('hex')}`
  await client.console.send(serverId, words)
  await until(async () => (await client.console.read(serverId, { q: `heard ${words}`, limit: 1 })).data.length === 1)
}

function gameOf({ dataDir }: World, serverId: string): ProcessIdentity {
  const folder = join(dataDir, 'servers', serverId, 'game')
  const name = readdirSync(folder).find((entry) => /^run-.*\.json$/.test(entry))
  const { game } = JSON.parse(readFileSync(join(folder, name ?? ''), 'utf8')) as RunRecord
  return game as ProcessIdentity
}

/** Since the last look: numbers of lines without a gap, and ticks without a gap within each run. Answers how many lines. */
async function requireEveryLine(world: World, client: Client, serverId: string): Promise<number> {
  let { line: last, tick } = world.seen.get(serverId) ?? { line: 0, tick: 0 }
  const lines: ConsoleLine[] = []
  for await (const line of client.console.all(serverId, { limit: 500 })) {
    if (line.line <= last) break
    lines.push(line)
  }
  for (const { line, source, text } of lines.toReversed()) {
    assert.equal(line, ++last, `${serverId}: a line is missing`)
    if (source === 'gamekeeper' && text === 'Started.') tick = 0
    const [, number] = /^tick (\d+)$/.exec(source === 'stdout' ? text : '') ?? []
    if (number !== undefined) assert.equal(Number(number), ++tick, `${serverId}: what the game wrote is missing`)
  }
  world.seen.set(serverId, { line: last, tick })
  return lines.length
}

/** In the end every one of them stops as it is told to, and starts again. */
async function inspect(world: World, service: ServiceProcess): Promise<string> {
  const client = clientOf(world, service.url)
  for (const serverId of world.servers) {
    await settle(world, client, serverId)
    await client.power.stop(serverId)
    const stopped = await until(async () => {
      const { power } = await client.servers.read(serverId)
      return power.state === 'stopped' && power
    })
    assert.equal(stopped.exit?.reason, 'requested')
    assert.equal((await client.power.start(serverId)).power.state, 'running')
    await client.power.kill(serverId)
    await until(async () => (await client.servers.read(serverId)).power.state === 'stopped')
  }
  return 'every power action works'
}
