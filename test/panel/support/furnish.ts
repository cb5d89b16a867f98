// A service with something to see: three servers, one of them running, with files, backups and activity.
import { readFileSync } from 'node:fs'
import { createClient } from '../../../src/sdk/index.ts'
import { gameFile } from '../../support/games.ts'

export async function furnish(baseUrl: string, token: string): Promise<string> {
  const client = createClient({ baseUrl, token })
  await client.servers.create({ name: 'Old survival', port: 25567, labels: { owner: 'anna' } })
  await client.servers.create({ name: 'Creative', port: 25566, limits: { diskBytes: 2_147_483_648 } })
  const { id } = await client.servers.create({ name: 'Castle', port: 25565, limits: { diskBytes: 5_368_709_120 } })
  const world = 'x'.repeat(200_000)
  const files = {
    '/start': readFileSync(gameFile('plain'), 'utf8'),
    '/server.properties': 'motd=Welcome to the castle\nmax-players=20\n',
    '/banned-players.json': '[]\n',
    '/world/level.dat': 'level',
    '/world/region/r.0.0.mca': world,
    '/logs/latest.log': 'Loading the world\n',
  }
  for (const [path, content] of Object.entries(files)) await client.files.write(id, path, content)
  await client.files.setMode(id, { files: ['start'], mode: '0755' })
  const backup = await client.backups.create(id, { name: 'Before the siege', isLocked: true })
  await client.backups.wait(id, backup.id)
  await client.power.start(id)
  for (const command of ['say Hello, everybody', 'list', 'time set day']) await client.console.send(id, command)
  await client.backups.create(id)
  return id
}
