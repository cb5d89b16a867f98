import { test } from 'node:test'
import { run } from './files.ts'

const ROUNDS = Number(process.env.GAMEKEEPER_FAULT_ROUNDS ?? 3)

test(`files survive the service being killed at ${ROUNDS} random instants`, async (t) => {
  await run(ROUNDS, (line) => t.diagnostic(line))
})
