// What pictures of the panel show: a game that runs, with players who talk, files, backups, names and friends.
import { randomBytes } from 'node:crypto'
import type { Client } from '../../../src/sdk/index.ts'
import { until } from '../../support/until.ts'

const LINES = [
  '[Server thread/INFO]: Starting the castle on *:25565',
  '[Server thread/INFO]: Preparing level "world"',
  '[Server thread/INFO]: Preparing spawn area: 64%',
  '[Server thread/WARN]: \\033[33mThe drawbridge took 1204 ms to lower\\033[0m',
  '[Server thread/INFO]: \\033[32mDone (3.412s)! For help, type "help"\\033[0m',
  '[Server thread/INFO]: anna joined the game',
  '[Server thread/INFO]: <anna> Who moved the dragon?',
  '[Server thread/INFO]: ben joined the game',
  '[Server thread/INFO]: <ben> It was like that when I came',
]
// Holds some memory, as games do.
const GAME = [
  'world=$(head -c 30000000 /dev/zero | tr "\\0" x)',
  ...LINES.map((line) => `printf '%b\\n' '${line}'`),
  'while read -r line; do [ "$line" = stop ] && exit 0; echo "[Server thread/INFO]: $line"; done',
].join('; ')

const TEMPLATE = {
  format: 1,
  id: 'castle',
  name: 'Castle siege',
  runtimes: ['process'],
  start: { args: ['/bin/sh', '-c', GAME] },
  ready: ['Done ('],
  joins: [': {player} joined the game'],
  leaves: [': {player} left the game'],
  variables: [
    { name: 'MAX_PLAYERS', title: 'Players at most', type: 'integer', min: 1, max: 100, default: 20 },
    { name: 'PASSWORD', title: 'Password', type: 'secret' },
  ],
  stop: [{ command: 'stop', timeoutSeconds: 10 }],
}

/** Sizes in bytes, of files that nobody reads. */
const SIZES = {
  '/world/region/r.0.0.mca': 5_200_000,
  '/world/region/r.0.1.mca': 3_900_000,
  '/world/region/r.1.0.mca': 2_600_000,
  '/world/level.dat': 2_400,
  '/mods/better-dragons.jar': 1_800_000,
  '/mods/moats.jar': 640_000,
  '/plugins/map/tiles.db': 2_100_000,
}

async function furnishFiles(client: Client, serverId: string): Promise<void> {
  const texts = {
    '/server.properties': 'motd=Welcome to the castle\nmax-players=20\ndifficulty=hard\nview-distance=12\npvp=true\n',
    '/banned-players.json': '[]\n',
    '/ops.json': '[{ "name": "anna", "level": 4 }]\n',
    '/logs/latest.log': LINES.map((line) => `${line.replaceAll(/\\033\[\d+m/g, '')}\n`).join(''),
  }
  for (const [path, text] of Object.entries(texts)) await client.files.write(serverId, path, text)
  for (const [path, bytes] of Object.entries(SIZES))
    await client.files.write(serverId, path, new Blob([randomBytes(bytes)]))
}

async function furnishPeople(client: Client, serverId: string): Promise<void> {
  const scopes = ['servers:read', 'console:read', 'activity:read', 'subdomains:read'] as const
  await client.tokens.create({ name: 'Anna', scopes: [...scopes], servers: [serverId] })
  await client.tokens.create({ name: 'nightly copies', scopes: ['backups:read'], servers: '*' })
  await client.invitations.create({ name: 'Ben', scopes: [...scopes, 'console:write', 'power:write'], servers: '*' })
}

export async function furnishShowcase(client: Client): Promise<{ serverId: string; backupId: string }> {
  await client.templates.create(JSON.stringify(TEMPLATE))
  await client.servers.create({ name: 'Old survival', port: 25567, labels: { owner: 'anna' } })
  await client.servers.create({ name: 'Creative', port: 25566, limits: { diskBytes: 2_147_483_648 } })
  const limits = { diskBytes: 5_368_709_120 }
  const { id } = await client.servers.create({ name: 'Castle', game: 'castle', port: 25565, limits })
  await furnishFiles(client, id)
  const first = await client.backups.create(id, { name: 'Before the siege', isLocked: true })
  await client.backups.wait(id, first.id)
  await client.files.write(
    id,
    '/server.properties',
    'motd=The siege is on\nmax-players=40\ndifficulty=hard\npvp=true\n',
  )
  await client.power.start(id)
  await until(async () => (await client.players.read(id)).players?.length === 2)
  for (const command of ['say The gates close at nine', 'list', 'time set night'])
    await client.console.send(id, command)
  const second = await client.backups.create(id)
  await client.backups.wait(id, second.id)
  await client.files.write(id, '/mods/towers.jar', new Blob([randomBytes(420_000)]))
  const third = await client.backups.create(id, { name: 'With towers' })
  await client.backups.wait(id, third.id)
  await client.backups.createSchedule(id, { cron: '0 4 * * *', name: 'Every night' })
  await furnishPeople(client, id)
  for (const name of ['castle', 'siege']) await client.subdomains.create(id, { name, zone: 'play.example.org' })
  return { serverId: id, backupId: first.id }
}
