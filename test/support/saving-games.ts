// Servers that run the game `saving` through the front door, and what their consoles say.
import assert from 'node:assert/strict'
import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Power } from '../../src/contract/games/power.ts'
import { createWorld } from './backups.ts'
import { gameFile, QUIESCE, READY } from './games.ts'
import type { TestService } from './service.ts'
import { until } from './until.ts'

export type SavingGames = ReturnType<typeof createSavingGames>

export function createSavingGames(service: TestService) {
  const world = createWorld(service)
  const stateOf = async (id: string): Promise<Power> => (await service.call('GET', `/servers/${id}`)).body.power
  const linesOf = async (id: string): Promise<{ source: string; text: string }[]> =>
    (await service.call('GET', `/servers/${id}/console?limit=500`)).body.data.reverse()

  async function power(id: string, action: string): Promise<void> {
    const reply = await service.call('POST', `/servers/${id}/power`, { body: { action } })
    assert.equal(reply.status, 202, reply.text)
  }

  async function reach(id: string, state: Power['state']): Promise<Power> {
    return until(async () => {
      const now = await stateOf(id)
      return now.state === state && now
    })
  }

  return {
    ...world,
    stateOf,
    power,
    reach,
    async addTemplate(id: string, timeoutSeconds = QUIESCE.timeoutSeconds): Promise<void> {
      const environment = { PORT: '{{server.port}}' }
      const body = {
        ...{ format: 1, id, name: id, runtimes: ['process'], start: { args: ['./start'], environment } },
        ready: [READY],
        ...{ stop: [{ command: 'stop', timeoutSeconds: 20 }], quiesce: { ...QUIESCE, timeoutSeconds } },
      }
      const reply = await service.call('POST', '/templates', { body })
      assert.equal(reply.status, 201, reply.text)
    },
    /** A server with the game among its files. */
    async create(files: Record<string, string> = {}, body: object = {}): Promise<string> {
      const id = await world.server(files, { game: 'saving', ...body })
      copyFileSync(gameFile('saving'), join(world.folder(id), 'start'))
      return id
    },
    async run(files: Record<string, string> = {}, body: object = {}): Promise<string> {
      const id = await this.create(files, body)
      await power(id, 'start')
      await reach(id, 'running')
      return id
    },
    /** What was sent to the game, oldest first. */
    commandsOf: async (id: string): Promise<string[]> =>
      (await linesOf(id)).filter(({ source }) => source === 'command').map(({ text }) => text),
    /** What the game has said itself. */
    saidBy: async (id: string): Promise<string[]> =>
      (await linesOf(id)).filter(({ source }) => source === 'stdout').map(({ text }) => text),
    read: (id: string, path: string) => readFileSync(join(world.folder(id), path), 'utf8'),
  }
}
