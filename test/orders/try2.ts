import { startPostgres } from '../../scripts/postgres.ts'
const [, , engine, filterA = '', filterB = ''] = process.argv
const pgs = engine === 'postgres' ? await startPostgres() : undefined
if (pgs) process.env.GAMEKEEPER_TEST_POSTGRES = pgs.url
const { openStage } = await import('./stage.ts')
const { allPairs, rehearse, tryOrder, tell } = await import('./pairs.ts')
const stage = await openStage(engine as 'sqlite')
let n = 0
for (const pair of allPairs()) {
  if (!((pair.a.match(filterA) && pair.b.match(filterB)) || (pair.a.match(filterB) && pair.b.match(filterA)))) continue
  const t = performance.now()
  const { serials, schedules } = await rehearse(stage, pair)
  const seen = new Map<string, number>()
  for (const schedule of schedules) {
    n++
    const f = await tryOrder(stage, pair, schedule, serials)
    if (f) {
      const key = f.faults.join()
      if (!seen.has(key)) console.log(tell(f))
      seen.set(key, (seen.get(key) ?? 0) + 1)
    }
  }
  console.log('##', pair.a, '×', pair.b, schedules.length, 'schedules', [...seen.values()].join(' '), 'found', Math.round(performance.now() - t), 'ms')
}
console.log(n, 'schedules')
await stage.stop()
await pgs?.stop()
