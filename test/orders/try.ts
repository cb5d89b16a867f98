import { startPostgres } from '../../scripts/postgres.ts'
const engine = process.argv[2] as 'sqlite'
const pgs = engine === ('postgres' as string) ? await startPostgres() : undefined
if (pgs) process.env.GAMEKEEPER_TEST_POSTGRES = pgs.url
const { openStage } = await import('./stage.ts')
const { playInTurn } = await import('./schedules.ts')
const { OPERATIONS } = await import('./operations.ts')
const stage = await openStage(process.argv[2] as 'sqlite')
for (const name of Object.keys(OPERATIONS)) {
  const t = performance.now()
  const r = await playInTurn(stage, { a: name, b: 'make folder' }, ['A'], true)
  console.log(name, r.answers.A, r.stuck, Math.round(performance.now() - t), 'ms', r.points.A.length)
  if (process.argv[3] === name) console.log(r)
}
await stage.stop()
await pgs?.stop()
