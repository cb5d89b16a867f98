import { it } from 'node:test'
import { run } from './backups.ts'

const ROUNDS = Number(process.env.GAMEKEEPER_FAULT_ROUNDS ?? 5)

it(`backups survive being killed at ${ROUNDS} random instants`, async (t) => {
  await run(ROUNDS, 1, (line) => t.diagnostic(line))
})

it('so does an encrypted store', async (t) => {
  await run(Math.ceil(ROUNDS / 4), 2, (line) => t.diagnostic(line))
})
