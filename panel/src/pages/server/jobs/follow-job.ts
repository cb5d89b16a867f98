import { useQueryClient } from '@tanstack/react-query'
import { type Job, JobError } from '../../../../../src/sdk/index.ts'
import { client } from '../../../api/client.ts'
import { showFailure } from '../../../components/toasts.tsx'

interface Ending {
  onDone: (job: Job) => void
  /** Said if it fails, with the reason. */
  failed: string
}

/** Stays with a job until it has ended, also when the viewer looks at something else by then. Never rejects. */
export function useFollowJob(serverId: string): (job: Job, ending: Ending) => Promise<void> {
  const queries = useQueryClient()
  return async (job, { onDone, failed }) => {
    try {
      onDone(await client.jobs.wait(serverId, job.id))
    } catch (error) {
      // Anything else says nothing of the job, which may go on and succeed: its page shows how it ended.
      if (error instanceof JobError) showFailure(failed, error)
    } finally {
      // Whatever a job has done, it is on one of these.
      for (const noun of ['jobs', 'backups', 'files', 'trash', 'server']) {
        void queries.invalidateQueries({ queryKey: [noun, serverId] })
      }
    }
  }
}
