// Who may import whom. The table is that of the design; a file that is not allowed for is a fault of the file.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { importsOf, type Source, sourcesUnder } from './sources.ts'

/** Slices of control in the order in which they may know each other: each knows the `service.ts` of those before it. */
const SLICE_ORDER = [['tokens', 'activity'], ['templates'], ['servers'], ['backups', 'files', 'subdomains']]
const SHARED_IN_CONTROL = ['http', 'db', 'jobs']
/** Control's own wiring. */
const WIRING = /^src\/control\/(app|config|recovery|secrets|upkeep|upkeep\.\w+)\.ts$/

const FOLDERS: Record<string, string[]> = {
  contract: [],
  kit: [],
  http: ['contract', 'kit'],
  dns: ['contract', 'kit'],
  blobs: ['contract', 'kit'],
  templates: ['contract', 'kit'],
  control: ['contract', 'kit', 'http', 'dns', 'templates'],
  agent: ['contract', 'kit', 'http', 'blobs', 'templates'],
  sdk: ['contract'],
  panel: ['contract', 'sdk'],
  cli: ['contract', 'sdk', 'templates'],
}

/** Rooms of the agent's backups, from the bytes on disk upwards: each may import those of the ranks before it. */
const ROOMS = 'src/agent/backups/'
const ROOM_ORDER = [
  ['format'],
  ['blocks', 'tree'],
  ['workers'],
  ['store'],
  ['create', 'restore', 'read', 'maintain'],
  // What puts them together.
  ['index.ts'],
]
/** The door to a server's files knows nothing of what is done behind it. */
const DOOR = 'src/agent/files/sandbox/'

/** A process of its own beside each game: whatever it imports, every game pays for. */
const SUPERVISOR = 'src/agent/games/supervisor/'
const OF_SUPERVISOR = /^src\/agent\/games\/(?:supervisor\/|console\/|process-identity\.ts)/

const isTest = (path: string) => /\.(test|testing|suite|contract)\.ts$/.test(path)
const rankOf = (slice: string) => SLICE_ORDER.findIndex((rank) => rank.includes(slice))

const roomOf = (path: string) => path.slice(ROOMS.length).split('/')[0] ?? ''
function isUpward(from: string, to: string): boolean {
  if (isTest(from) || !from.startsWith(ROOMS) || !to.startsWith(ROOMS) || roomOf(from) === roomOf(to)) return false
  const [own, other] = [from, to].map((path) => ROOM_ORDER.findIndex((rank) => rank.includes(roomOf(path))))
  return own === undefined || other === undefined || own < 0 || other < 0 || own <= other
}

export function faultOf(from: string, to: string): string | null {
  const refuse = `${from} may not import ${to}`
  if (to === '(computed)') return `${from} imports what cannot be read from its text`
  if (from === 'src/main.ts') return null
  if (!to.startsWith('src/')) return isTest(from) && /^(test|scripts)\//.test(to) ? null : refuse
  if (to === 'src/main.ts') return from === 'src/cli/commands/serve.ts' || isTest(from) ? null : refuse
  const [, folder = '', slice = ''] = from.split('/')
  const [, target = '', targetSlice = ''] = to.split('/')
  if (folder !== target) return FOLDERS[folder]?.includes(target) ? null : refuse
  if (isUpward(from, to)) return refuse
  if (from.startsWith(SUPERVISOR) && !OF_SUPERVISOR.test(to)) return refuse
  if (from.startsWith(DOOR) && to.startsWith('src/agent/files/') && !to.startsWith(DOOR) && !isTest(from)) return refuse
  if (folder !== 'control' || slice === targetSlice || WIRING.test(from)) return null
  if (SHARED_IN_CONTROL.includes(targetSlice)) return null
  if (WIRING.test(to)) return isTest(from) ? null : refuse
  const mayKnow = rankOf(slice) >= 0 && rankOf(targetSlice) >= 0 && rankOf(targetSlice) <= rankOf(slice)
  return mayKnow && to === `src/control/${targetSlice}/service.ts` ? null : refuse
}

const faultsIn = (sources: Source[]) =>
  sources.flatMap((source) => importsOf(source).flatMap((to) => faultOf(source.path, to) ?? []))

test('A test reads every import and fails on one that the table does not allow', () => {
  const sources = sourcesUnder('src')
  assert.ok(sources.length > 50)
  assert.deepEqual(faultsIn(sources), [])
})

test('the test sees every kind of import, and refuses those across the lines', () => {
  const refused: Record<string, string> = {
    "import { a } from '../control/app.ts'": 'src/agent/x.ts',
    "import type { A } from '../agent/agent.ts'": 'src/control/app.ts',
    "import {\n  a,\n  b,\n} from '../http/server.ts'": 'src/contract/x.ts',
    "import '../contract/errors.ts'": 'src/kit/x.ts',
    "export * from '../control/config.ts'": 'src/cli/x.ts',
    "const a = await import('../../main.ts')": 'src/cli/commands/token.ts',
    'const a = await import(name)': 'src/sdk/x.ts',
    "import { a } from '../servers/service.ts'": 'src/control/tokens/service.ts',
    "import { b } from '../servers/store.ts'": 'src/control/backups/service.ts',
    "import { c } from '../backups/service.ts'": 'src/control/servers/service.ts',
    "import { d } from '../config.ts'": 'src/control/tokens/service.ts',
    "import { e } from '../tokens/service.ts'": 'src/control/http/auth.ts',
    "import { f } from '../support/service.ts'": 'src/kit/y.ts',
    "import { g } from '../nowhere/x.ts'": 'src/elsewhere/x.ts',
    "import { h } from '../create/pack-sink.ts'": 'src/agent/backups/store/recovered-store.ts',
    "import type { I } from '../restore/restore.ts'": 'src/agent/backups/read/browse.ts',
    "import { j } from '../index.ts'": 'src/agent/backups/maintain/verify.ts',
    "import { l } from '../trash/trash.ts'": 'src/agent/files/sandbox/staging.ts',
    "import { m } from '../power/game.ts'": 'src/agent/games/supervisor/supervisor.ts',
    "import { k } from '../new-room/x.ts'": 'src/agent/backups/maintain/verify.ts',
  }
  for (const [text, path] of Object.entries(refused)) {
    assert.equal(faultsIn([{ path, text }]).length, 1, `${path}: ${text}`)
  }
})

test('what the design allows is allowed', () => {
  const allowed: Record<string, string> = {
    "import { a } from '../servers/service.ts'": 'src/control/backups/service.ts',
    "import { b } from '../activity/service.ts'": 'src/control/tokens/service.ts',
    "import { c } from '../db/tables.ts'": 'src/control/tokens/store.ts',
    "import { d } from '../../main.ts'": 'src/cli/commands/serve.ts',
    "import { e } from 'fastify'": 'src/contract/x.ts',
    "import { f } from '../store/packs.ts'": 'src/agent/backups/create/pack-sink.ts',
    "import { g } from './read/browse.ts'": 'src/agent/backups/index.ts',
  }
  for (const [text, path] of Object.entries(allowed)) assert.deepEqual(faultsIn([{ path, text }]), [])
})
