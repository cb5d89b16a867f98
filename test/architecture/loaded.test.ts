// What few need is not loaded by all (docs/decisions/start.md).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadedWith } from './sources.ts'

const SERVICE = /^src\/(?:agent\/agent|control\/app|http\/server)\.ts$|^src\/agent\/(?:games|http)\//
const serviceIn = (...paths: string[]) => [...loadedWith(...paths)].filter((path) => SERVICE.test(path))

test('a recovery loads the store and the database, not the service', () => {
  assert.deepEqual(serviceIn('src/main.ts', 'src/agent/recovery.ts', 'src/control/recovery.ts'), [])
})

test('the test sees what is loaded', () => {
  assert.ok(serviceIn('src/control/app.ts').includes('src/http/server.ts'))
  assert.ok(serviceIn('src/agent/agent.ts').some((path) => path.startsWith('src/agent/games/')))
})
