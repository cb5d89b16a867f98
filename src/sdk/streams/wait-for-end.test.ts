import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient, isApiError } from '../index.ts'

const job = (status: string, bytesDone = 0) => ({ id: 'job_1', status, progress: { bytesDone }, error: null })
const event = (state: object) => `event: job\ndata: ${JSON.stringify(state)}\n\n`
const refusal = (status: number, code: string) =>
  Response.json({ type: 'about:blank', title: code, status, detail: code, code, requestId: 'req_1' }, { status })

/** Answers one request after another, and says what was asked for. */
function answering(...answers: ((isStream: boolean) => Response)[]) {
  const asked: string[] = []
  const client = createClient({
    baseUrl: 'http://127.0.0.1:1',
    fetch: async (_, init) => {
      const isStream = new Headers(init?.headers).get('accept') === 'text/event-stream'
      asked.push(isStream ? 'stream' : 'read')
      const answer = answers.shift()
      assert.ok(answer, 'asked once too often')
      return answer(isStream)
    },
  })
  return { client, asked }
}

test('one stream tells of every state until the end', async () => {
  const states = [job('queued'), job('running', 50), job('completed', 100)]
  const { client, asked } = answering(() => new Response(states.map(event).join(': alive\n\n')))
  const seen: number[] = []
  const done = await client.jobs.wait('srv_1', 'job_1', { onProgress: ({ progress }) => seen.push(progress.bytesDone) })
  assert.deepEqual([done.status, seen, asked], ['completed', [0, 50, 100], ['stream']])
})

test('where no stream is to be had, or it ends too early, the state is asked for', async () => {
  const { client, asked } = answering(
    () => refusal(429, 'rate_limited'),
    () => Response.json(job('queued')),
    () => new Response(event(job('running', 10))),
    () => Response.json(job('running', 20)),
    () => new Response(new ReadableStream({ start: (controller) => controller.error(new Error('broken')) })),
    () => Response.json(job('completed', 100)),
  )
  const seen: number[] = []
  await client.jobs.wait('srv_1', 'job_1', { onProgress: ({ progress }) => seen.push(progress.bytesDone) })
  assert.deepEqual(seen, [0, 10, 20, 100])
  assert.deepEqual(asked, ['stream', 'read', 'stream', 'read', 'stream', 'read'])
})

test('what is not there is not waited for', async () => {
  const { client, asked } = answering(() => refusal(404, 'not_found'))
  await assert.rejects(client.backups.wait('srv_1', 'bak_1'), (error) => isApiError(error, 'not_found'))
  assert.deepEqual(asked, ['stream'])
})

test('a service that goes away and comes back is waited for, one that was never there is not', async () => {
  const gone = () => {
    throw new TypeError('fetch failed')
  }
  const { client } = answering(
    () => new Response(event(job('running', 10))),
    ...Array.from({ length: 6 }, () => gone),
    () => Response.json(job('completed', 100)),
  )
  const patient = await client.jobs.wait('srv_1', 'job_1')
  assert.equal(patient.status, 'completed')
  const never = createClient({ baseUrl: 'http://127.0.0.1:1', retries: 0, fetch: async () => gone() })
  await assert.rejects(never.jobs.wait('srv_1', 'job_1'), { name: 'TransportError' })
})

test('a stream that was refused for a while is not asked for before that', async () => {
  const refused = refusal(429, 'rate_limited')
  refused.headers.set('retry-after', '60')
  const { client, asked } = answering(
    () => refused,
    () => Response.json(job('queued')),
    () => Response.json(job('running', 10)),
    () => Response.json(job('completed', 100)),
  )
  await client.jobs.wait('srv_1', 'job_1')
  assert.deepEqual(asked, ['stream', 'read', 'read', 'read'])
})
