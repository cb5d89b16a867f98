// An unpack during which the service is killed comes to its end after the next start, and has one entry.
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createWorld, type World } from '../../../test/support/backups.ts'
import { createHttp } from '../../../test/support/http.ts'
import { killLeftovers, spawnService } from '../../../test/support/process.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'

const FILES = Object.fromEntries(Array.from({ length: 6 }, (_, index) => [`f${index}`, `content ${index}`]))

/** When the service dies: the condition is on the call that is about to be made. */
const INSTANTS = {
  'while its files move': "call === 'linkSync' && /\\/f\\d$/.test(to) && ++count === 3",
  'when all have moved': "call === 'renameSync' && from.includes('/unpack-')",
}

describe('an unpack during which the service is killed', () => {
  let service: TestService
  let world: World
  before(async () => {
    service = await startTestService()
    world = createWorld(service)
  })
  after(async () => {
    killLeftovers()
    await service.stop()
  })

  for (const [when, condition] of Object.entries(INSTANTS))
    test(`${when} is completed, and recorded once`, async () => {
      const packed = Object.fromEntries(Object.entries(FILES).map(([name, text]) => [`src/${name}`, text]))
      const server = await world.server({ ...packed, 'into/own': 'own' })
      const pack = { root: '/src', files: Object.keys(FILES), format: 'tar', target: '/a.tar' }
      const { body } = await service.call('POST', `/files/${server}/pack`, { body: pack })
      assert.equal((await world.jobEnded(server, body.id)).status, 'completed')
      await service.halt()
      const jobId = await unpackAndDie(service, server, condition)
      await service.restart()
      const job = await world.jobEnded(server, jobId)
      assert.equal(job.status, 'completed', JSON.stringify(job.error))
      const into = join(world.folder(server), 'into')
      assert.deepEqual((await readdir(into)).sort(), [...Object.keys(FILES), 'own'])
      for (const [name, text] of Object.entries(FILES)) assert.equal(await readFile(join(into, name), 'utf8'), text)
      const { body: activity } = await service.call('GET', `/servers/${server}/activity?limit=100`)
      const events: string[] = activity.data.map(({ event }: { event: string }) => event)
      assert.deepEqual(events.slice(0, 2), ['file.unpacked', 'job.started'])
      assert.equal(events.filter((event) => event === 'file.unpacked').length, 1)
      assert.deepEqual(await readdir(join(service.dataDir, 'servers', server, 'staging')), [])
    })
})

/** Returns the id of the job. */
async function unpackAndDie(service: TestService, server: string, condition: string): Promise<string> {
  const hook = `
    import fs from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    let count = 0
    for (const call of ['linkSync', 'renameSync']) {
      const real = fs[call]
      fs[call] = (fromPath, toPath) => {
        const [from, to] = [String(fromPath), String(toPath)]
        if (${condition}) process.kill(process.pid, 'SIGKILL')
        return real(fromPath, toPath)
      }
    }
    syncBuiltinESMExports()`
  const env = {
    GAMEKEEPER_DATA_DIR: service.dataDir,
    GAMEKEEPER_ADMIN_TOKEN: service.adminToken,
    ...(service.databaseUrl === null ? {} : { GAMEKEEPER_DATABASE_URL: service.databaseUrl }),
  }
  const doomed = await spawnService(env, { preload: `data:text/javascript,${encodeURIComponent(hook)}` })
  const http = createHttp(doomed.url, service.adminToken)
  const reply = await http.call('POST', `/files/${server}/unpack`, { path: '/a.tar', directory: '/into' })
  assert.equal(reply.status, 202)
  assert.equal(await doomed.exited, 'SIGKILL')
  return reply.body.id
}
