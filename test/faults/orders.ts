// `npm run faults -- orders [most of a pair] [--pair 'A × B'] [--engine sqlite|postgres] [--seed S]`: pairs of operations on
// one server in every order of their steps: first with the points at the database and the agent's port, then within the agent.
import { parseArgs } from 'node:util'
import type { Engine } from '../../src/control/db/database.ts'
import { withPostgres } from './history/main.ts'

export async function playOrders(mostOfAPair: number, say: (line: string) => void, args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      pair: { type: 'string', default: '' },
      engine: { type: 'string' },
      seed: { type: 'string', default: '1' },
    },
  })
  await withPostgres(async (engines) => {
    let wrong = 0
    for (const engine of values.engine ? engines.filter((name) => name === values.engine) : engines)
      for (const atDisk of [false, true])
        wrong += await playOn(engine, { atDisk, mostOfAPair, matching: values.pair, seed: Number(values.seed), say })
    if (wrong > 0) process.exitCode = 1
  })
}

async function playOn(engine: Engine, { atDisk, mostOfAPair, matching, seed, say }: PlayOptions): Promise<number> {
  // They read the address of the database when they are loaded.
  const { pairsOf, runOrders, sampler } = await import('../orders/run.ts')
  const { isExpected } = await import('../orders/faults.ts')
  const { tell } = await import('../orders/pairs.ts')
  const sample = sampler(seed)
  const where = `${engine}, ${atDisk ? 'within the agent' : 'at the ports'}`
  const { played, findings } = await runOrders(engine, {
    pairs: pairsOf(new RegExp(matching)),
    atDisk,
    choose: ({ schedules }) =>
      sample(
        schedules.filter(({ point }) => point.startsWith('disk') === atDisk),
        mostOfAPair,
      ),
    onPair(pair, orders, found) {
      say(`${where}: ${pair.a} × ${pair.b}: ${orders} orders, ${found.length} wrong`)
      for (const finding of found) if (!isExpected(finding, engine)) say(tell(finding))
    },
  })
  const wrong = findings.filter((finding) => !isExpected(finding, engine)).length
  say(`${where}: ${played} orders, ${findings.length - wrong} wrong as known, ${wrong} wrong`)
  return wrong
}

interface PlayOptions {
  atDisk: boolean
  mostOfAPair: number
  matching: string
  seed: number
  say(line: string): void
}
