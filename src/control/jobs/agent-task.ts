// Runs a task on the agent as a job: starts it, follows it, passes on cancellation. The task has the job's id, so that
// after a crash of control the same task is found again, or started again if the agent has forgotten it too.
import { setTimeout as delay } from 'node:timers/promises'
import type { AgentTasks, TaskKind, TaskResults, WorkOf } from '../../contract/agent.ts'
import { fail } from '../../contract/errors.ts'
import type { JobContext } from './runner.ts'

const POLL_WAIT_MS = 10_000
/** Should the agent forget it again and again. */
const AGAIN_AFTER_MS = 50

export async function runAgentTask<K extends TaskKind>(
  tasks: AgentTasks,
  job: Pick<JobContext<unknown>, 'jobId' | 'serverId' | 'signal' | 'report'>,
  work: WorkOf<K> & { kind: K },
): Promise<TaskResults[K]> {
  const { jobId: taskId, serverId, signal, report } = job
  const cancel = () => void tasks.cancel({ taskId, serverId }).catch(() => {})
  signal.addEventListener('abort', cancel, { once: true })
  const start = async () => {
    await tasks.start({ taskId, serverId, work })
    // Also one that the agent had forgotten when it was asked to stop.
    if (signal.aborted) cancel()
  }
  try {
    await start()
    let version = 0
    for (;;) {
      const state = await tasks.poll({ taskId, serverId, version, waitMs: POLL_WAIT_MS })
      version = state.version
      report(state.progress)
      if (state.status === 'completed') return state.result as TaskResults[K]
      if (state.status === 'failed') throw fail(state.error?.code ?? 'internal', state.error?.detail ?? '')
      if (state.status === 'cancelled') throw signal.reason ?? fail('internal', 'The agent has stopped the work.')
      if (state.status !== 'unknown') continue
      await start()
      await delay(AGAIN_AFTER_MS)
    }
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}
