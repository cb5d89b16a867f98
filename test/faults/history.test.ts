// The short form of `npm run faults -- history`: one round of many themes, each on the engine that is the more likely to
// show its faults, with seeds that do not change. GAMEKEEPER_HISTORY_THEMES names others, on both engines, or `all`.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Engine } from '../../src/control/db/database.ts'
import { onBothEngines } from '../support/engines.ts'
import { killLeftovers } from '../support/process.ts'
import { ENGINES, reasonToSkip, runRound, tailOf } from './history/run.ts'
import { THEMES } from './history/themes/index.ts'

after(killLeftovers)

const SEED = 11
const SHORT: Record<Engine, readonly string[]> = {
  sqlite: [...['lying-sizes', 'broken-restores', 'killed-folders', 'refused-statements']],
  postgres: [...['lock-against-delete', 'quota-race', 'merge-quota', 'deleted-while-packing']],
}

function themesFor(engine: Engine): string[] {
  const asked = process.env.GAMEKEEPER_HISTORY_THEMES
  const names = asked === 'all' ? Object.keys(THEMES) : (asked?.split(',') ?? SHORT[engine])
  return names.filter((name) => (THEMES[name]?.engines ?? ENGINES).includes(engine))
}

onBothEngines('a history', (engine) => {
  for (const [index, name] of themesFor(engine).entries()) {
    test(`${name}: ${THEMES[name]?.about}`, { skip: reasonToSkip(name) }, async (t) => {
      const { violations, history, requests } = await runRound(name, engine, SEED + index)
      t.diagnostic(`${requests} requests`)
      assert.deepEqual(violations, [], violations.length > 0 ? `${history}\n${tailOf(history)}` : '')
    })
  }
})
