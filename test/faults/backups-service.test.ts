import { it } from 'node:test'
import { killBackupService } from './backups-service.ts'

it('a service that is killed during backups and restores ends them after its next start', async (t) => {
  await killBackupService(6, (line) => t.diagnostic(line))
})
