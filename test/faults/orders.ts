// Every pair of operations on one server, in every order of their steps, on both engines: first with the points at the
// database and the agent's port, then with those within the agent.
import { startPostgres } from '../../scripts/postgres.ts'

const SEED = 11

/** At most so many orders of each pair; all of them unless there are more. */
export async function playOrders(mostOfAPair: number, say: (line: string) => void, filter: string): Promise<void> {
  const postgres = await startPostgres()
  process.env.GAMEKEEPER_TEST_POSTGRES = postgres.url
  // It reads the address when it is loaded.
  const { pairsOf, runOrders, sampler } = await import('../orders/run.ts')
  const { isExpected } = await import('../orders/faults.ts')
  const { tell } = await import('../orders/pairs.ts')
  let unexpected = 0
  for (const engine of ['sqlite', 'postgres'] as const) {
    for (const atDisk of [false, true]) {
      const sample = sampler(SEED)
      const where = `${engine}, ${atDisk ? 'within the agent too' : 'at the ports'}`
      const { played, findings } = await runOrders(engine, {
        pairs: pairsOf(new RegExp(filter)),
        atDisk,
        choose: ({ schedules }) =>
          sample(
            schedules.filter(({ point }) => !atDisk || point.startsWith('disk')),
            mostOfAPair,
          ),
        onPair(pair, orders, found) {
          say(`${where}: ${pair.a} × ${pair.b}: ${orders} orders, ${found.length} wrong`)
          for (const finding of found) if (!isExpected(finding, engine)) say(tell(finding))
        },
      })
      const news = findings.filter((finding) => !isExpected(finding, engine)).length
      unexpected += news
      say(`${where}: ${played} orders, ${findings.length - news} wrong as known, ${news} wrong`)
    }
  }
  await postgres.stop()
  if (unexpected > 0) process.exitCode = 1
}
