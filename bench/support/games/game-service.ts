// The service as a process of its own, with games that it runs, driven over HTTP as a client does.
import { randomBytes } from 'node:crypto'
import { chmodSync, copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunRecord } from '../../../src/agent/games/supervisor/protocol.ts'
import { type Client, createClient } from '../../../src/sdk/client.ts'
import { endGames } from '../../../test/support/games.ts'
import { type ServiceProcess, spawnService } from '../../../test/support/process.ts'
import { until } from '../../../test/support/until.ts'

export interface GameService extends AsyncDisposable {
  service: ServiceProcess
  client: Client
  filesOf(serverId: string): string
  /** A server whose game is this program. Not started yet. */
  create(name: string, program: URL, game?: string): Promise<string>
  /** Resolves once it runs. */
  start(serverId: string): Promise<void>
  /** The processes beside its game that hold it. */
  supervisorsOf(serverId: string): number[]
}

export async function startGameService(): Promise<GameService> {
  const dataDir = mkdtempSync(join(process.env.GAMEKEEPER_BENCH_DIR ?? tmpdir(), 'gamekeeper-bench-'))
  const token = `gk_admin_${randomBytes(32).toString('hex')}`
  const service = await spawnService({
    GAMEKEEPER_DATA_DIR: dataDir,
    GAMEKEEPER_ADMIN_TOKEN: token,
    GAMEKEEPER_RATE_LIMIT: '0',
  })
  const client = createClient({ baseUrl: service.url, token })
  const folderOf = (serverId: string) => join(dataDir, 'servers', serverId)
  const filesOf = (serverId: string) => join(folderOf(serverId), 'files')
  return {
    service,
    client,
    filesOf,
    async create(name, program, game) {
      const { id } = await client.servers.create({ name, ...(game === undefined ? {} : { game }) })
      copyFileSync(program, join(filesOf(id), 'start'))
      chmodSync(join(filesOf(id), 'start'), 0o755)
      return id
    },
    async start(serverId) {
      await client.power.start(serverId)
      await until(async () => (await client.servers.read(serverId)).power.state === 'running')
    },
    supervisorsOf(serverId) {
      const folder = join(folderOf(serverId), 'game')
      return readdirSync(folder)
        .filter((name) => /^run-.*\.json$/.test(name))
        .map((name) => (JSON.parse(readFileSync(join(folder, name), 'utf8')) as RunRecord).supervisor.pid)
    },
    async [Symbol.asyncDispose]() {
      await service.kill('SIGTERM')
      endGames(dataDir)
      // Those that were ended write a last line.
      await until(async () => {
        rmSync(dataDir, { recursive: true, force: true, maxRetries: 3 })
        return true
      })
    },
  }
}
