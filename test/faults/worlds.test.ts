// The service is killed while it works on the world of a game: what it owed to the game is done at its next start.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { type Client, createClient } from '../../src/sdk/index.ts'
import { temporaryDirectory } from '../support/daemons.ts'
import { endGames, gameFile } from '../support/games.ts'
import { needs } from '../support/needs.ts'
import { killLeftovers, type ServiceProcess, spawnService } from '../support/process.ts'
import { isGone, rehearsalsOf, rehearsalUnderWay } from '../support/rehearsals.ts'
import { until } from '../support/until.ts'

suite('SIGKILL in the middle of work on a world', needs('bubblewrap'), () => {
  const directory = temporaryDirectory('faults-worlds')
  const token = `gk_admin_${randomBytes(32).toString('hex')}`
  const env = { GAMEKEEPER_DATA_DIR: directory.path, GAMEKEEPER_ADMIN_TOKEN: token, GAMEKEEPER_RATE_LIMIT: '0' }
  let service: ServiceProcess
  let client: Client
  const open = async () => {
    service = await spawnService(env)
    client = createClient({ baseUrl: service.url, token, retries: 0 })
  }
  before(open)
  after(async () => {
    await service.kill('SIGKILL')
    killLeftovers()
    endGames(directory.path)
    directory.remove()
  })

  const filesOf = (id: string) => join(directory.path, 'servers', id, 'files')
  const stateOf = async (id: string) => (await client.servers.read(id)).power.state
  const reach = (id: string, state: string) => until(async () => (await stateOf(id)) === state)
  async function create(files: Record<string, string>): Promise<string> {
    const { id } = await client.servers.create({ name: `World ${randomBytes(4).toString('hex')}` })
    for (const [name, text] of Object.entries(files)) writeFileSync(join(filesOf(id), name), text)
    copyFileSync(gameFile('saving'), join(filesOf(id), 'start'))
    return id
  }
  const backUp = async (id: string) => client.backups.wait(id, (await client.backups.create(id)).id)

  test('If the service is killed in between, the restore goes on at its next start, and the game is started after it.', async () => {
    const id = await create({ level: 'old' })
    await client.power.start(id)
    await reach(id, 'running')
    const backup = await backUp(id)
    const steps = {
      // By its entry: it is stopped for as long as the restore takes, which may be over before it is asked for again.
      'the game has stopped': async () => (await client.activity.list(id, { event: 'game.stopped' })).data.length > 0,
      // In the middle of the swap it is not there.
      'the files are restored': () =>
        readFile(join(filesOf(id), 'level'), 'utf8').then(
          (text) => text === 'old',
          () => false,
        ),
    }
    for (const [step, isThere] of Object.entries(steps)) {
      writeFileSync(join(filesOf(id), 'level'), 'wrecked')
      const job = await client.backups.restore(id, backup.id, { mode: 'replace', stop: true })
      await until(isThere)
      await service.kill('SIGKILL')
      await open()
      assert.equal((await client.jobs.wait(id, job.id)).status, 'completed', step)
      await reach(id, 'running')
      assert.equal(readFileSync(join(filesOf(id), 'level'), 'utf8'), 'old', step)
      assert.ok(!existsSync(join(filesOf(id), '..', 'game', 'paused.json')), step)
    }
    await client.power.kill(id)
  })

  test('If the service dies in the middle, its next start ends the game and removes them, and the job begins again', async () => {
    const id = await create({ never: '' })
    const backup = await backUp(id)
    // Without a line that says so it is up once it stays.
    const job = await client.backups.rehearse(id, backup.id)
    const record = await rehearsalUnderWay(directory.path, id)
    await service.kill('SIGKILL')
    assert.ok(!isGone(record))
    await open()
    assert.ok(isGone(record))
    const { result } = await client.jobs.wait(id, job.id)
    assert.equal((result as { outcome: string }).outcome, 'passed')
    assert.ok(!existsSync(rehearsalsOf(directory.path)))
  })
})
