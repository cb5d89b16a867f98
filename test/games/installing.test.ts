// An installation through the front door, and across a SIGKILL of the service.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { sendCall } from '../support/call.ts'
import { endGames } from '../support/games.ts'
import { needs } from '../support/needs.ts'
import { killLeftovers, spawnService } from '../support/process.ts'
import { until } from '../support/until.ts'

const TEMPLATE = {
  ...{ format: 1, id: 'slow', name: 'Slow', runtimes: ['process'], stop: [{ command: 'stop', timeoutSeconds: 5 }] },
  variables: [{ name: 'GREETING', type: 'text', default: 'hello' }],
  start: { args: ['sh', '-c', 'echo up; read -r line'], environment: { GREETING: '{{GREETING}}' } },
  install: [
    { do: 'write', path: '/eula.txt', text: 'eula=true\n' },
    { do: 'run', args: ['sh', '-c', 'echo "$GREETING" >> runs; until [ -e go ]; do sleep 0.05; done; echo went'] },
    { do: 'write', path: '/last.txt', text: 'done\n' },
  ],
}

suite('installing', needs('bubblewrap'), () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'gamekeeper-install-'))
  const adminToken = `gk_admin_${randomBytes(32).toString('hex')}`
  const start = () => spawnService({ GAMEKEEPER_DATA_DIR: dataDir, GAMEKEEPER_ADMIN_TOKEN: adminToken })
  after(() => {
    killLeftovers()
    endGames(dataDir)
    rmSync(dataDir, { recursive: true, force: true })
  })

  test('After a crash of the service the job goes on with the step that it came to; a program that ran on meanwhile is not run again.', async () => {
    let service = await start()
    const call = (method: string, path: string, body?: object) =>
      sendCall(service.url, adminToken, method, path, body === undefined ? {} : { body })
    await call('POST', '/templates', TEMPLATE)
    const { id } = (await call('POST', '/servers', { name: 'Castle', game: 'slow' })).body
    const file = (name: string) => join(dataDir, 'servers', id, 'files', name)
    writeFileSync(file('old.txt'), 'x')
    const asked = await call('POST', `/servers/${id}/install`, { wipe: true, start: true })
    assert.equal(asked.status, 202, asked.text)
    await until(async () => existsSync(file('runs')))
    const refused = await call('POST', `/servers/${id}/power`, { action: 'start' })
    assert.deepEqual([refused.status, refused.body.code], [409, 'server_busy'])
    await service.kill('SIGKILL')
    service = await start()
    writeFileSync(file('go'), '')
    const job = await until(async () => {
      const { body } = await call('GET', `/servers/${id}/jobs/${asked.body.id}`)
      return ['completed', 'failed'].includes(body.status) && body
    })
    assert.deepEqual(
      [job.status, job.result, job.progress.filesDone],
      ['completed', { steps: 3 }, 3],
      job.error?.detail,
    )
    assert.equal(readFileSync(file('runs'), 'utf8'), 'hello\n')
    assert.equal(readFileSync(file('last.txt'), 'utf8'), 'done\n')
    assert.equal(existsSync(file('old.txt')), false)
    const events = (await call('GET', `/servers/${id}/activity`)).body.data.map(({ event }: { event: string }) => event)
    for (const event of ['job.started', 'file.deleted', 'server.installed']) assert.ok(events.includes(event), event)
    // Asked for before the crash, and done after it.
    const lines: string[] = await until(async () => {
      const { data } = (await call('GET', `/servers/${id}/console`)).body
      const texts = data.map(({ text }: { text: string }) => text)
      return texts.includes('up') && texts
    })
    assert.ok(lines.indexOf('Installed.') > lines.indexOf('up'), 'newest first')
    assert.ok(lines.includes('went'))
    await call('POST', `/servers/${id}/power`, { action: 'kill' })
    await service.kill('SIGTERM')
  })
})
