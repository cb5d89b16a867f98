import { test } from 'node:test'
import { killService } from './service.ts'

test('There is no change without its entry and no entry without its change.', async (t) => {
  await killService(4, (line) => t.diagnostic(line))
})
