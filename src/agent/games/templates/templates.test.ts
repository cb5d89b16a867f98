import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GAMES, type Game } from '../../../contract/games/games.ts'
import { templateFaults } from '../../../templates/check.ts'
import { resolveTemplate } from '../../../templates/resolve.ts'
import { createLineMatcher } from '../console/line-pattern.ts'
import { SHIPPED_TEMPLATES } from './index.ts'

const SERVER = { id: 'srv_1', name: 'Castle', port: null, memoryBytes: 2 * 1024 ** 3 }
/** What a user has to give, since no default would do. */
const NEEDED: Record<string, Record<string, string>> = {
  valheim: { PASSWORD: 'swordfish' },
  rust: { RCON_PASSWORD: 'swordfish' },
}

test('every shipped template is one, and can be started with its defaults', () => {
  assert.equal(SHIPPED_TEMPLATES.length, 13)
  for (const template of SHIPPED_TEMPLATES) {
    assert.deepEqual(templateFaults(template), [], template.id)
    const server = template.id === 'generic' ? { ...SERVER, port: 4000 } : SERVER
    const { launch } = resolveTemplate(template, NEEDED[template.id] ?? {}, server)
    assert.ok(!JSON.stringify(launch).includes('{{'), template.id)
  }
})

test('shipped templates say the same of ports and DNS as the list of games', () => {
  for (const { id, defaultPort, srv, ports } of SHIPPED_TEMPLATES) {
    if (id === 'generic') continue
    const game = (GAMES as Record<string, Game>)[id]
    assert.deepEqual(
      { defaultPort, srv: srv ?? null, protocol: ports?.[0]?.protocol },
      { defaultPort: game?.defaultPort, srv: game?.srv, protocol: game?.protocol },
      id,
    )
  }
})

/** Lines of the games: that it is still or was told to stop, and a player who says the same. */
const CHATS: [id: string, field: 'isStill' | 'stopsByItself', words: string, prefixes: string[], player: string][] = [
  ...['minecraft-java', 'paper'].flatMap((id): typeof CHATS => {
    const prefixes = [
      '[12:00:00] [Server thread/INFO]: ',
      '[12:00:00 INFO]: ',
      '[12:00:00] [Server thread/INFO] [minecraft/MinecraftServer]: ',
      '[16Nov2026 12:00:00.123] [Server thread/INFO] [net.minecraft.server.MinecraftServer/]: ',
    ]
    return [
      [id, 'isStill', 'Saved the game', prefixes, '<bob> '],
      [id, 'stopsByItself', 'Stopping the server', prefixes, '[Not Secure] <bob> '],
      [id, 'stopsByItself', '[anna: Stopping the server]', prefixes, '<bob> '],
    ]
  }),
  ...(['', '> ', '> > '] as const).flatMap((prompts): typeof CHATS => {
    const prefixes = [`${prompts}\u001b[1GNovember 16th 2026, 13:01:04 [\u001b[32mINFO\u001b[39m]: `]
    return [
      ['flying-squid', 'isStill', 'Saved the world', prefixes, '<bob> '],
      ['flying-squid', 'stopsByItself', 'Server is closed.', prefixes, '<bob> '],
    ]
  }),
  ['luanti', 'stopsByItself', 'Server: Shutting down', ['2026-11-16 13:00:42: ACTION[Main]: '], 'CHAT: <bob> '],
  ['openttd', 'isStill', "Map successfully saved to 'gamekeeper.sav'.", ['', '[2026-11-16 13:00:42] '], '[All] bob: '],
  ['openttd', 'stopsByItself', 'Shutting down network', ['dbg: [net] '], '[All] bob: '],
  ['factorio', 'isStill', 'Saving finished', ['  66.180 Info AppManagerStates.cpp:1945: '], '[CHAT] bob: '],
  ['factorio', 'stopsByItself', 'Goodbye', ['  70.001 '], '[CHAT] bob: '],
  ['terraria', 'isStill', 'Backing up world file', [''], '<bob> '],
  ['rust', 'isStill', 'Saved 12,345 ents, cache(0.01)', [''], '[CHAT] bob[7656] : '],
]

test('no player can say in the chat that a world is saved, or that a server was told to stop', () => {
  for (const [id, field, words, prefixes, player] of CHATS) {
    const template = SHIPPED_TEMPLATES.find((each) => each.id === id)
    const patterns = field === 'isStill' ? template?.quiesce?.isStill : template?.stopsByItself
    const matcher = createLineMatcher([patterns ?? []].flat())
    for (const prefix of prefixes) {
      assert.ok(matcher.matches(Buffer.from(`${prefix}${words}`)), `${id}: ${prefix}${words}`)
      for (const said of [words, `${prefix}${words}`, `: ${words}`])
        assert.ok(!matcher.matches(Buffer.from(`${prefix}${player}${said}`)), `${id}: ${prefix}${player}${said}`)
    }
  }
})

test('those that our tests do not start say so', () => {
  const tested = SHIPPED_TEMPLATES.filter(({ isTested }) => isTested).map(({ id }) => id)
  assert.deepEqual(tested.sort(), ['flying-squid', 'generic', 'luanti', 'openttd'])
})

test('the heap of a Java server leaves room below the memory limit', () => {
  const java = SHIPPED_TEMPLATES.find(({ id }) => id === 'minecraft-java')
  assert.ok(java)
  const argvWith = (memoryBytes: number | null) => resolveTemplate(java, {}, { ...SERVER, memoryBytes }).launch.argv
  assert.deepEqual(argvWith(2 * 1024 ** 3), ['java', '-Xms128M', '-Xmx1536M', '-jar', 'server.jar', 'nogui'])
  assert.deepEqual(argvWith(8 * 1024 ** 3).slice(1, 3), ['-Xms128M', '-Xmx6144M'])
  assert.deepEqual(argvWith(null), ['java', '-jar', 'server.jar', 'nogui'])
})

test('a second Palworld starts beside the first: without its password it has no port of RCON', () => {
  const palworld = SHIPPED_TEMPLATES.find(({ id }) => id === 'palworld')
  assert.ok(palworld)
  const server = { id: 'srv_1', name: 'Castle', port: null, memoryBytes: null }
  const portsOf = (values: Record<string, string>) =>
    resolveTemplate(palworld, values, server).launch.ports.map(({ name }) => name)
  assert.deepEqual(portsOf({}), ['game'])
  assert.deepEqual(portsOf({ ADMIN_PASSWORD: 'open' }), ['game', 'rcon'])
})
