import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GAMES, type Game } from '../../../contract/games/games.ts'
import { templateFaults } from '../../../templates/check.ts'
import { resolveTemplate } from '../../../templates/resolve.ts'
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
