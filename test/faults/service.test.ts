import { test } from 'node:test'
import { killService } from './service.ts'

test('killed in the middle of writes, the service loses nothing that was answered and makes nothing up', async (t) => {
  await killService(8, (line) => t.diagnostic(line))
})
