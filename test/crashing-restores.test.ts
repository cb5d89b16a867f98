// A restore that brings the process down, for real, at each of its stages, start after start: it is given up after the third,
// and the files are those before it or those of the backup, whole.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { layout } from '../src/agent/layout.ts'
import { JOB_CRASHES_MAX } from '../src/contract/limits.ts'
import { createKeeper } from './faults/history/keeper.ts'
import { ALL_OFF } from './faults/history/switches.ts'
import { sendCall } from './support/call.ts'
import { onBothEngines } from './support/engines.ts'
import { killLeftovers } from './support/process.ts'
import { until } from './support/until.ts'

after(killLeftovers)

const BEFORE = { 'world/level': 'before', 'world/region/a': 'before', own: 'before' }
const BACKED_UP = { 'world/level': 'backed up', 'world/region/a': 'backed up', gone: 'backed up' }
const STAGES = ['agent/backups/restore-stage.ts']

function filesIn(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const paths = names.map(({ parentPath, name }) => join(parentPath, name))
  return Object.fromEntries(paths.map((path) => [path.slice(folder.length + 1), readFileSync(path, 'utf8')]).sort())
}

const sorted = (files: Record<string, string>) => Object.fromEntries(Object.entries(files).sort())

onBothEngines('a restore that brings the process down', (engine) => {
  for (const stage of STAGES)
    test(`in ${stage} is failed after its third start, and the files are whole`, async (t) => {
      const keeper = await createKeeper(engine)
      t.after(() => keeper.dispose())
      await keeper.start()
      const call = (method: string, path: string, body?: unknown) =>
        sendCall(keeper.url, keeper.token, method, path, body === undefined ? {} : { body })
      const { id } = (await call('POST', '/servers', { name: 'Castle' })).body
      const folder = layout(keeper.dataDir).server(id).files
      const write = async (files: Record<string, string>) => {
        for (const [path, content] of Object.entries(files))
          await call('PUT', `/files/${id}/content?path=/${path}`, content)
      }
      await write(BACKED_UP)
      const { id: backupId } = (await call('POST', `/backups/${id}`, {})).body
      await until(async () => (await call('GET', `/backups/${id}/${backupId}`)).body.status === 'completed')
      await call('DELETE', `/files/${id}`, { files: ['gone'] })
      await write(BEFORE)

      await keeper.set({ files: [{ match: stage, skip: 0, times: 1_000_000, fault: { kill: 'before' } }] })
      const body = { mode: 'replace', safetyBackup: false }
      const asked = await call('POST', `/backups/${id}/${backupId}/restore`, body).catch(() => undefined)
      for (let starts = 1; starts < JOB_CRASHES_MAX; starts++) {
        await until(async () => keeper.isDown())
        // It may die before it has said that it is up, or a moment after.
        await keeper.start().catch(() => {})
      }
      await until(async () => keeper.isDown())
      await keeper.start()
      const { body: jobs } = await call('GET', `/servers/${id}/jobs`)
      const job = jobs.data.find(({ kind }: { kind: string }) => kind === 'restore')
      assert.deepEqual([job.status, job.error?.code], ['failed', 'job_crashed'])
      if (asked) assert.equal(job.id, asked.body.id)
      assert.deepEqual(filesIn(folder), sorted(BEFORE))
      assert.ok(existsSync(folder))
      await keeper.set(ALL_OFF)
      const again = (await call('POST', `/backups/${id}/${backupId}/restore`, body)).body.id
      const ended = await until(async () => {
        const { body: now } = await call('GET', `/servers/${id}/jobs/${again}`)
        return !['queued', 'running'].includes(now.status) && now
      })
      assert.equal(ended.status, 'completed', JSON.stringify(ended))
      assert.deepEqual(filesIn(folder), sorted(BACKED_UP))
    })
})
