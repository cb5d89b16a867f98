// A job that brings the process down, for real: the process is killed by what the job does, start after start.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { FIRST_SWITCHES, type Switches } from './faults/history/switches.ts'
import { freshDatabase, onBothEngines } from './support/engines.ts'
import { killLeftovers, type ServiceProcess, spawnService } from './support/process.ts'
import { until } from './support/until.ts'

const SWITCHBOARD = new URL('./faults/history/switchboard.ts', import.meta.url).href
const MATCH = 'agent/files/archives/pack.ts'
const switches: Switches = {
  files: [{ match: MATCH, skip: 0, times: 1_000_000, fault: { kill: 'before' } }],
  statements: [],
  clockOffsetMs: 0,
  isCounting: false,
}

after(killLeftovers)

onBothEngines('a job that brings the process down', (engine) => {
  test('A job during which the process crashed three times fails with job_crashed, is recorded, and is not started again.', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-crashing-'))
    const databaseUrl = await freshDatabase(engine)
    const token = `gk_admin_${randomBytes(32).toString('hex')}`
    const env = {
      GAMEKEEPER_DATA_DIR: dataDir,
      GAMEKEEPER_ADMIN_TOKEN: token,
      ...(databaseUrl ? { GAMEKEEPER_DATABASE_URL: databaseUrl } : {}),
      [FIRST_SWITCHES]: JSON.stringify(switches),
    }
    const call = async ({ url }: ServiceProcess, method: string, path: string, body?: object) => {
      const reply = await fetch(`${url}/v1/game${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) },
        ...(body ? { body: JSON.stringify(body) } : {}),
      })
      // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting on it
      return (await reply.json()) as any
    }

    const first = await spawnService(env, { preload: SWITCHBOARD })
    const { id } = await call(first, 'POST', '/servers', { name: 'Castle' })
    await call(first, 'POST', `/files/${id}/folder`, { name: 'world' })
    const job = await call(first, 'POST', `/files/${id}/pack`, { files: ['world'] })
    assert.equal(await first.exited, 'SIGKILL')
    // It may die before it has said that it is up, or a moment after.
    const starts = [await endOf(env), await endOf(env)]
    assert.deepEqual(starts, ['SIGKILL', 'SIGKILL'])

    const up = await spawnService(env, { preload: SWITCHBOARD })
    const ended = await call(up, 'GET', `/servers/${id}/jobs/${job.id}`)
    assert.equal(ended.status, 'failed')
    assert.equal(ended.error.code, 'job_crashed')
    const { data } = await call(up, 'GET', `/servers/${id}/activity?event=job.failed`)
    assert.equal(data.length, 1)
    assert.equal(data[0].properties.jobId, job.id)
    assert.equal(data[0].properties.error.code, 'job_crashed')
    // The same kind of work for the same server is not refused: it is tried, and this one is stopped in time.
    assert.equal((await call(up, 'GET', `/servers/${id}`)).status, 'ready')
    assert.equal(await up.kill('SIGTERM'), 0)
    await rm(dataDir, { recursive: true })
  })
})

async function endOf(env: Record<string, string>): Promise<number | NodeJS.Signals> {
  const started = await spawnService(env, { preload: SWITCHBOARD }).catch(() => undefined)
  return started ? until(async () => started.exited) : 'SIGKILL'
}
