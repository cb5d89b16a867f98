// Texts that are made to take long, or much, to read. The victim is whoever else uses the service.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestService, type TestService } from '../support/service.ts'
import { watchTurns } from '../support/turns.ts'

const MOST = 1_000_000
const line = (index: number) => `key${index}: v\n`

const BODIES: Record<string, string> = {
  'a YAML of seven thousand keys': Array.from({ length: 7000 }, (_, index) => line(index)).join(''),
  'a YAML bomb': 'a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: [*c,*c,*c,*c]\n',
  'nested lists': `a: ${'['.repeat(10_000)}`,
  'a megabyte of one text': `name: ${'x'.repeat(MOST)}`,
  'a megabyte of variables': `{"meta":{"version":"PTDL_v2"},"name":"x","startup":"./x","variables":[${Array(4500)
    .fill(JSON.stringify({ env_variable: 'A', rules: `regex:/^(a+)+${'x'.repeat(150)}$/` }))
    .join()}]}`,
  'an expression that would never end': `{"meta":{"version":"PTDL_v2"},"name":"x","startup":"./x","variables":[{"env_variable":"A","default_value":"${'a'.repeat(1000)}b","rules":"regex:/^(a+)+(a|a)*$/"}]}`,
}

let service: TestService
before(async () => {
  service = await startTestService()
})
after(() => service.stop())

test('no template or egg keeps the event loop, whatever is in it, and others are answered meanwhile', async () => {
  const { id } = await service.createServer()
  using watch = watchTurns()
  await watch.ready
  for (const [what, body] of Object.entries(BODIES)) {
    const before = (await watch.longTurns()).length
    const type = body.startsWith('{') ? 'application/json' : 'application/yaml'
    const authorization = `Bearer ${service.adminToken}`
    const reading = fetch(`${service.url}/v1/game/templates?replace=true`, {
      method: 'POST',
      headers: { authorization, 'content-type': type },
      body,
    })
    const other = await fetch(`${service.url}/v1/game/servers/${id}`, { headers: { authorization } })
    assert.equal(other.status, 200)
    const reply = await reading
    await reply.arrayBuffer()
    assert.ok(reply.status === 201 || reply.status === 400, `${what} was answered with ${reply.status}`)
    assert.deepEqual((await watch.longTurns()).slice(before), [], what)
  }
})
