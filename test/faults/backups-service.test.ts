import { it } from 'node:test'
import { killBackupService } from './backups-service.ts'

it('A job survives a crash: what was under way is taken up again at the next start.', async (t) => {
  await killBackupService(3, (line) => t.diagnostic(line))
})
