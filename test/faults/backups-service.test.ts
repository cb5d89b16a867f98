import { it } from 'node:test'
import { killBackupService } from './backups-service.ts'

it('A job survives a crash: work under way resumes at the next start.', async (t) => {
  await killBackupService(3, (line) => t.diagnostic(line))
})
