// flying-squid, a Minecraft server out of npm. Its own app.js lets its defaults win over the settings, has no commands for
// saving, and forgets chunks that change while it saves, so it is started by a file of ours.
import type { Template } from '../../../contract/games/template-format.ts'

const START = `// Written when the server is installed. Starts flying-squid with config/settings.json.
const { createMCServer } = require('flying-squid')
const defaults = require('flying-squid/config/default-settings.json')
const settings = { ...defaults, ...require('./config/settings.json') }
const server = createMCServer({ ...settings, worldFolder: \`world/\${settings.version}\` })

// It gives its plugins five seconds and then gives up on itself, which a busy machine needs not mean.
process.on('unhandledRejection', (error) => console.error(error))

/** What changes while it is being saved is saved again; its own way would forget that. */
function keepEveryChange(world) {
  const saveQueue = async () => {
    for (const [key, place] of [...world.savingQueue]) {
      await world.storageProvider.save(place.chunkX, place.chunkZ, world.columns[key])
      if (world.savingQueue.get(key) === place) world.savingQueue.delete(key)
    }
    for (const [key, { chunkX, chunkZ }] of [...world.unloadQueue])
      if (!world.savingQueue.has(key)) world.forceUnloadColumn(key, chunkX, chunkZ)
  }
  let last = Promise.resolve()
  world.saveNow = () => (last = last.then(saveQueue, saveQueue))
}

async function saveAll() {
  await Promise.all(server.players.map((player) => player.save()))
  await server.overworld.saveNow()
}

function addCommands(world) {
  const add = (base, info, action) => server.commands.add({ base, info, usage: '/' + base, op: true, action })
  add('save-all', 'to save the world', async () => {
    await saveAll()
    return 'Saved the world'
  })
  add('save-off', 'to save the world only when told to', () => {
    world.stopSaving()
    return 'The world is saved only when told to'
  })
  add('save-on', 'to save the world every second', () => {
    world.stopSaving()
    world.startSaving()
    return 'The world is saved every second'
  })
  add('stop', 'to save the world and stop', async () => {
    world.stopSaving()
    await saveAll()
    await server.quit('The server stops')
    await world.saveNow()
    process.exit(0)
  })
}

const happened = (event) => new Promise((resolve) => server.once(event, resolve))
Promise.all([happened('pluginsReady'), happened('listening')]).then(() => {
  keepEveryChange(server.overworld)
  addCommands(server.overworld)
  server.info('The world is loaded: players can join')
})
`

/** After as many prompts as commands that it has just read. What players say comes after their names. */
const logged = (text: string) =>
  ['', '> ', '> > '].map((prompts) => `^${prompts}{month} {day} {year} {time} [INFO]: ${text}`)

export const flyingSquid: Template = {
  format: 1,
  id: 'flying-squid',
  name: 'Minecraft: flying-squid',
  description: 'A Minecraft server written in JavaScript, from npm. For tests and experiments.',
  isTested: true,
  defaultPort: 25565,
  srv: '_minecraft._tcp',
  runtimes: ['process', 'container'],
  images: [{ name: 'Node.js 24', image: 'docker.io/library/node:24-slim' }],
  variables: [
    { name: 'MOTD', title: 'Message of the day', type: 'text', default: 'A flying-squid server', maxLength: 150 },
    { name: 'MAX_PLAYERS', title: 'Players at once', type: 'integer', default: 10, min: 1, max: 100 },
    { name: 'MINECRAFT_VERSION', type: 'text', default: '1.21.4', pattern: '^\\d+(\\.\\d+){1,2}$', isRequired: true },
    { name: 'ONLINE_MODE', title: 'Check accounts with Mojang', type: 'boolean', default: true },
    { name: 'GAME_MODE', title: 'Game mode', type: 'integer', default: 1, min: 0, max: 3 },
    { name: 'VIEW_DISTANCE', title: 'How many chunks players see', type: 'integer', default: 10, min: 1, max: 32 },
    {
      name: 'GENERATION',
      title: 'New land',
      type: 'choice',
      default: 'diamond_square',
      choices: ['diamond_square', 'superflat'],
    },
  ],
  requires: [
    { kind: 'program', program: 'node', hint: 'Install Node.js 18 or newer.' },
    { kind: 'file', path: '/node_modules/flying-squid/package.json', hint: 'Install the server first.' },
    { kind: 'file', path: '/start.cjs', hint: 'Install the server first.' },
  ],
  install: [
    { do: 'run', args: ['npm', 'install', '--prefix', '.', '--ignore-scripts', '--no-fund', 'flying-squid@1.12.0'] },
    { do: 'write', path: '/start.cjs', text: START },
  ],
  start: { args: ['node', 'start.cjs'] },
  configFiles: [
    {
      path: '/config/settings.json',
      format: 'json',
      settings: [
        { key: ['port'], value: '{{server.port}}' },
        { key: ['motd'], value: '{{MOTD}}' },
        { key: ['max-players'], value: '{{MAX_PLAYERS}}' },
        { key: ['version'], value: '{{MINECRAFT_VERSION}}' },
        { key: ['online-mode'], value: '{{ONLINE_MODE}}' },
        { key: ['gameMode'], value: '{{GAME_MODE}}' },
        { key: ['view-distance'], value: '{{VIEW_DISTANCE}}' },
        { key: ['generation', 'name'], value: '{{GENERATION}}' },
        { key: ['generation', 'options', 'worldHeight'], value: 80 },
      ],
    },
  ],
  ready: ['The world is loaded: players can join'],
  stop: [
    { command: 'stop', timeoutSeconds: 20, message: 'Waiting for the world to be saved' },
    { signal: 'SIGTERM', timeoutSeconds: 20 },
  ],
  stopsByItself: logged('Server is closed.'),
  joins: [']: {player} (*) connected'],
  leaves: [']: {player} disconnected'],
  ports: [{ name: 'game', protocol: 'tcp' }],
  query: { type: 'minecraft', port: 'game' },
  quiesce: {
    before: ['save-off', 'save-all'],
    isStill: logged('Saved the world'),
    timeoutSeconds: 60,
    after: ['save-on'],
  },
  ignored: ['/logs/'],
}
