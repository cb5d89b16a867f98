import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fail } from '../contract/errors.ts'
import type { TaskHandlers } from './tasks.ts'
import { createTasks, despiteCancel } from './tasks.ts'

const work = { kind: 'files.unpack', path: '/a.zip', directory: '/' } as const

/** Ends with that error once it is cancelled. */
async function endAfterCancel(error: Error) {
  const begun = Promise.withResolvers<void>()
  const handlers = {
    'files.unpack': async (_work: unknown, { signal }: { signal: AbortSignal }) => {
      begun.resolve()
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      throw error
    },
  } as unknown as TaskHandlers
  const tasks = createTasks({ handlers, onUnexpected: (error) => assert.fail(String(error)) })
  await tasks.start({ taskId: 'job_a', serverId: 'srv_a', work })
  await begun.promise
  await tasks.cancel({ taskId: 'job_a', serverId: 'srv_a' })
  for (let version = -1; ; ) {
    const state = await tasks.poll({ taskId: 'job_a', serverId: 'srv_a', version, waitMs: 1000 })
    if (state.status !== 'running') return state
    version = state.version
  }
}

test('work that fails because it was cancelled is cancelled', async () => {
  const { status, error } = await endAfterCancel(fail('already_exists', 'It is there.'))
  assert.deepEqual([status, error], ['cancelled', null])
})

test('work that failed after it could no longer be cancelled says how', async () => {
  const { status, error } = await endAfterCancel(despiteCancel(fail('already_exists', '3 of 9 files stay there.')))
  assert.deepEqual([status, error], ['failed', { code: 'already_exists', detail: '3 of 9 files stay there.' }])
})
