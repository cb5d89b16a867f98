// From the wish to start a game until players can join: over the API, against the same program started by hand.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { type Client, createClient } from '../../../src/sdk/client.ts'
import { freePort } from '../../../test/support/free-port.ts'
import { endGames } from '../../../test/support/games.ts'
import { putFlyingSquid, SQUID_VARIABLES } from '../../../test/support/minecraft/flying-squid.ts'
import { spawnService } from '../../../test/support/process.ts'
import { holds, median, table } from '../../measure.ts'

/** A single start takes 400 to 700 ms, by hand too: with fewer of them chance decides. */
const ROUNDS = Number(process.env.GAMEKEEPER_BENCH_ROUNDS ?? 61)
const ASK_EVERY_MS = 5
const READY = 'players can join'
const PATH = '/usr/local/bin:/usr/bin:/bin'

async function startByHand(folder: string): Promise<number> {
  const begun = performance.now()
  const game = spawn('node', ['start.cjs'], {
    cwd: folder,
    env: { PATH, HOME: folder },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  for await (const line of createInterface({ input: game.stdout })) if (line.includes(READY)) break
  const ms = performance.now() - begun
  game.stdin.end('stop\n')
  game.stdout.resume()
  await new Promise((resolve) => game.once('close', resolve))
  return ms
}

async function reach(client: Client, id: string, state: string): Promise<void> {
  while ((await client.servers.read(id)).power.state !== state) await delay(ASK_EVERY_MS)
}

/** Resolves with its first words. Whoever asks again and again before takes the processors from it. */
async function hear(client: Client, id: string): Promise<void> {
  for await (const { source } of client.console.follow(id)) if (source === 'stdout') return
}

async function startByApi(client: Client, id: string): Promise<number> {
  const heard = hear(client, id)
  const begun = performance.now()
  await client.power.start(id)
  await heard
  await reach(client, id, 'running')
  const ms = performance.now() - begun
  await client.power.stop(id)
  await reach(client, id, 'stopped')
  return ms
}

export async function startedGame(): Promise<boolean> {
  const folder = mkdtempSync(join(process.env.GAMEKEEPER_BENCH_DIR ?? tmpdir(), 'gamekeeper-bench-'))
  const dataDir = join(folder, 'data')
  const token = `gk_admin_${randomBytes(32).toString('hex')}`
  const service = await spawnService({
    ...{ GAMEKEEPER_DATA_DIR: dataDir, GAMEKEEPER_ADMIN_TOKEN: token, GAMEKEEPER_RATE_LIMIT: '0' },
  })
  try {
    const client = createClient({ baseUrl: service.url, token })
    const port = await freePort()
    const { id } = await client.servers.create({
      name: 'Squid',
      game: 'flying-squid',
      port,
      variables: SQUID_VARIABLES,
    })
    const files = join(dataDir, 'servers', id, 'files')
    putFlyingSquid(files)
    // Once for both: the config file is filled in, and everything has been read from the disk.
    await startByApi(client, id)
    const byHandFolder = join(folder, 'by-hand')
    cpSync(files, byHandFolder, { recursive: true })
    await startByHand(byHandFolder)
    const [byHand, byApi]: [number[], number[]] = [[], []]
    for (let round = 0; round < ROUNDS; round++) {
      byHand.push(await startByHand(byHandFolder))
      byApi.push(await startByApi(client, id))
    }
    table([
      ['flying-squid, until players can join', 'median, ms', 'best, ms'],
      ['by hand', median(byHand), Math.min(...byHand)],
      ['over the API', median(byApi), Math.min(...byApi)],
    ])
    return holds('a start over the API against one by hand', median(byApi) / median(byHand), '<=', 1.1)
  } finally {
    await service.kill('SIGTERM')
    endGames(dataDir)
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}
