// Which database an attack is played on. `npm test` plays those that go through the database on both, and the others on
// SQLite; `npm run faults -- hostile --engine postgres` plays all of them on one.
import { describe } from 'node:test'
import type { Engine } from '../../../src/control/db/database.ts'
import { onBothEngines } from '../../support/engines.ts'

const chosen = process.env.GAMEKEEPER_TEST_HOSTILE_ENGINE as Engine | undefined

export const ENGINE: Engine = chosen ?? 'sqlite'

export function onEngines(name: string, suite: (engine: Engine) => void): void {
  if (chosen) describe(`${name} on ${chosen}`, () => suite(chosen))
  else onBothEngines(name, suite)
}
