// Games as players know them, created from their templates and run over the API.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { freePort } from '../support/free-port.ts'
import { needs } from '../support/needs.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { until } from '../support/until.ts'

let service: TestService
before(async () => {
  service = await startTestService()
})
after(() => service.stop())

const power = (id: string, action: string) => service.call('POST', `/servers/${id}/power`, { body: { action } })
const stateOf = async (id: string) => (await service.call('GET', `/servers/${id}`)).body.power

/** Fails with the console where it ends in another state. */
async function reach(id: string, state: string): Promise<void> {
  const reached = await until(async () => {
    const { state: now } = await stateOf(id)
    return now === state || now === 'crashed' ? now : undefined
  })
  const { data } = (await service.call('GET', `/servers/${id}/console`)).body
  const lines = data.map(({ text }: { text: string }) => text).reverse()
  assert.equal(reached, state, lines.join('\n'))
}

async function runOnce(id: string, whileItRuns: () => Promise<void> = async () => {}): Promise<void> {
  const started = await power(id, 'start')
  assert.equal(started.status, 202, started.text)
  await reach(id, 'running')
  await whileItRuns()
  assert.equal((await power(id, 'stop')).status, 202)
  await reach(id, 'stopped')
  const { exit } = await stateOf(id)
  assert.deepEqual([exit.reason, exit.signal], ['requested', null], 'without SIGKILL')
}

const textOf = async (id: string, path: string) =>
  (await service.call('GET', `/files/${id}/content?path=${encodeURIComponent(path)}`)).text

const playersOf = async (id: string) => (await service.call('GET', `/servers/${id}/players`)).body

test('OpenTTD starts from its template, is ready, is queried, and stops by its ladder with the game saved', {
  ...needs('bubblewrap', 'openttd'),
}, async () => {
  const port = await freePort()
  const { id } = await service.createServer({
    game: 'openttd',
    port,
    variables: { SERVER_NAME: 'Rails', MAX_CLIENTS: 7 },
  })
  await runOnce(id, async () => {
    const { at: _, ...players } = await playersOf(id)
    assert.deepEqual(players, { online: 0, max: 7, players: [], source: 'query', reason: null })
  })
  const settings = await textOf(id, '/openttd.cfg')
  assert.match(settings, new RegExp(`^server_port = ${port}$`, 'm'))
  assert.match(settings, /^max_clients = 7$/m)
  assert.match(await textOf(id, '/private.cfg'), /^server_name = Rails$/m)
  const saved = (await service.call('GET', `/files/${id}?path=/save/autosave`)).body.data
  assert.ok(saved.some(({ name }: { name: string }) => name === 'exit.sav'))
})

test('Luanti starts from its template, is ready, and stops by its ladder with the world saved', {
  ...needs('bubblewrap', 'luanti'),
}, async () => {
  const { id } = await service.createServer({ game: 'luanti', port: await freePort() })
  await runOnce(id, async () => {
    const { online, players, source } = await until(async () => {
      const now = await playersOf(id)
      return now.online === null ? undefined : now
    })
    assert.deepEqual([online, players, source], [0, [], 'console'])
  })
  const world = (await service.call('GET', `/files/${id}?path=/world`)).body.data
  const names = world.map(({ name }: { name: string }) => name)
  assert.ok(names.includes('env_meta.txt'), names.join())
})

test(
  'a program of the user runs by the generic template, with its arguments as they are',
  needs('bubblewrap'),
  async () => {
    const { id } = await service.createServer({
      game: 'generic',
      variables: { ARG_1: 'two words', ARG_2: "'; reboot #" },
    })
    const script = '#!/bin/sh\nprintf "%s\\n" "$@"\nexec sleep 600\n'
    await service.call('PUT', `/files/${id}/content?path=/start.sh`, { body: Buffer.from(script) })
    await service.call('POST', `/files/${id}/mode`, { body: { files: ['/start.sh'], mode: '0755' } })
    const started = await power(id, 'start')
    assert.equal(started.status, 202, started.text)
    const lines = await until(async () => {
      const { data } = (await service.call('GET', `/servers/${id}/console`)).body
      return data.length >= 3 ? data : undefined
    })
    const said = lines
      .filter(({ source }: { source: string }) => source === 'stdout')
      .map(({ text }: { text: string }) => text)
    assert.deepEqual(said.reverse(), ['two words', "'; reboot #"])
    assert.equal((await power(id, 'stop')).status, 202)
    await reach(id, 'stopped')
  },
)

/** No jar of the game can be had here: what is tested is everything before it. */
test('Minecraft with a jar that the user supplies: what is missing is named, one after the other, and its files are filled in', {
  ...needs('bubblewrap'),
  skip: !existsSync('/usr/bin/java') && 'Java is not installed',
}, async () => {
  const port = await freePort()
  const { id } = await service.createServer({ game: 'minecraft-java', port, variables: { MOTD: 'Castle' } })
  const refusal = async () => {
    const { status, body } = await power(id, 'start')
    assert.deepEqual([status, body.code], [409, 'not_startable'])
    return body.detail
  }
  assert.match(await refusal(), /The file \/server\.jar is missing\. Upload the jar/)
  await service.call('PUT', `/files/${id}/content?path=/server.jar`, { body: Buffer.from('no jar') })
  assert.match(await refusal(), /Accept the Minecraft EULA: set the variable EULA to true/)
  assert.equal((await stateOf(id)).state, 'stopped')
  const accepted = await service.call('PATCH', `/servers/${id}`, {
    body: { variables: { EULA: true }, autoRestart: false },
  })
  assert.equal(accepted.status, 200, accepted.text)
  assert.equal((await power(id, 'start')).status, 202)
  await until(async () => (await stateOf(id)).state === 'crashed')
  const { data } = (await service.call('GET', `/servers/${id}/console?q=jarfile`)).body
  assert.match(data[0].text, /server\.jar/, 'Java has tried to run it')
  assert.match(await textOf(id, '/eula.txt'), /^eula=true$/m)
  const settings = await textOf(id, '/server.properties')
  assert.match(settings, new RegExp(`^server-port=${port}$`, 'm'))
  assert.match(settings, /^motd=Castle$/m)
})
