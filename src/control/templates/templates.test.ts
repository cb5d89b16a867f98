import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createWorld } from '../../../test/support/backups.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { ownTemplate } from '../../../test/support/operations.ts'
import { inOrder } from '../../../test/support/row-lock.ts'
import { type CallOptions, startTestService, type TestService } from '../../../test/support/service.ts'
import { SHIPPED_TEMPLATES } from '../../../test/support/shipped-templates.ts'
import { until } from '../../../test/support/until.ts'

const YAML = { 'content-type': 'application/yaml' }
const EGG = {
  meta: { version: 'PTDL_v2', update_url: null },
  name: 'Paper',
  author: 'someone@example.com',
  docker_images: { 'Java 21': 'ghcr.io/example/java:21' },
  startup: 'java -Xmx{{SERVER_MEMORY}}M -jar {{SERVER_JARFILE}}',
  config: { files: '{}', startup: '{"done": ")! For help, type "}', logs: '{}', stop: '^^C' },
  scripts: { installation: { script: '#!/bin/ash\necho hello', container: 'alpine', entrypoint: 'ash' } },
  variables: [
    {
      name: 'Jar',
      description: '',
      env_variable: 'SERVER_JARFILE',
      default_value: 'server.jar',
      user_viewable: true,
      user_editable: true,
      rules: 'required|regex:/^([\\w\\d._-]+)(\\.jar)$/',
    },
  ],
  future_field: { hello: 'world' },
}

onBothEngines('templates', (engine) => {
  let service: TestService
  before(async () => {
    service = await startTestService({ engine })
  })
  after(() => service.stop())

  const add = (body: unknown, more: CallOptions & { query?: string } = {}) =>
    service.call('POST', `/templates${more.query ?? ''}`, { body, ...more })
  const remove = (id: string) => service.call('DELETE', `/templates/${id}`)
  const ids = async (query = '') => {
    const { body } = await service.call('GET', `/templates${query}`)
    return body.data.map((template: { id: string }) => template.id)
  }

  test('GET /templates lists shipped templates and your own by id', async () => {
    assert.equal((await add(ownTemplate('zz-last'))).status, 201)
    const all = await ids()
    assert.deepEqual(all, all.toSorted())
    for (const id of ['factorio', 'flying-squid', 'luanti', 'minecraft-java', 'openttd', 'zz-last'])
      assert.ok(all.includes(id), id)
    const first = (await service.call('GET', '/templates?limit=5')).body
    assert.deepEqual([...first.data.map(({ id }: { id: string }) => id)], all.slice(0, 5))
    assert.deepEqual(await ids(`?limit=100&cursor=${first.nextCursor}`), all.slice(5))
    for (const template of SHIPPED_TEMPLATES) {
      const { source, createdAt, ...shown } = (await service.call('GET', `/templates/${template.id}`)).body
      assert.deepEqual(shown, template)
    }
    const read = (await service.call('GET', '/templates/openttd')).body
    assert.deepEqual([read.source, read.isTested, read.createdAt], ['shipped', true, null])
    assert.equal((await service.call('GET', '/templates/nothing')).status, 404)
    const { token } = await service.mint(['servers:read'])
    assert.equal((await service.call('GET', '/templates/zz-last', { token })).body.source, 'own')
  })

  test('the body is the template, as JSON or as YAML, and answers 201 with the template and a report', async () => {
    const template = ownTemplate('as-json')
    const json = await add(template)
    assert.equal(json.status, 201, json.text)
    assert.equal(json.headers.get('location'), '/v1/game/templates/as-json')
    assert.deepEqual(json.body.report, [{ path: '', level: 'carried', message: 'as it is' }])
    const { source, createdAt, ...kept } = json.body.template
    assert.deepEqual([kept, source], [template, 'own'])
    assert.deepEqual((await service.call('GET', '/templates/as-json')).body, { ...template, source, createdAt })
    const yaml =
      'format: 1\nid: as-yaml\nname: Mine\nruntimes: [process]\nstart: {args: [./x]}\nstop:\n- {signal: SIGINT, timeoutSeconds: 5}\n'
    assert.equal((await add(yaml, { headers: YAML })).body.template.name, 'Mine')
    assert.equal((await add(yaml, { headers: { 'content-type': 'text/plain' } })).body.code, 'unsupported_media_type')
    assert.equal((await add(`#${'x'.repeat(1024 * 1024)}`, { headers: YAML })).body.code, 'too_large')
    assert.equal((await add(Buffer.from([0x61, 0xff]), { headers: YAML })).body.code, 'invalid_request')
    const events = (await service.call('GET', '/activity?event=template.*')).body.data
    assert.deepEqual(events[0].properties, { templateId: 'as-yaml', name: 'Mine' })
  })

  test('every fault is named with its path and its line', async () => {
    const body = 'format: 1\nid: Bad Id\nname: x\nruntimes: [process]\ncolour: red\nstart: {}\nstop: []\n'
    const reply = await add(body, { headers: YAML })
    assert.equal(reply.status, 400)
    assert.deepEqual(
      reply.body.errors.map(({ path, message }: { path: string; message: string }) => `${path} ${message}`).toSorted(),
      [
        '/colour is not a known field (line 5)',
        '/id has characters or a form that is not allowed (line 2)',
        '/stop must NOT have fewer than 1 items (line 7)',
      ],
    )
  })

  test('an egg becomes a template, and the report says what of it was carried over, changed and dropped', async () => {
    const { status, body, text } = await add(EGG)
    assert.equal(status, 201, text)
    assert.equal(body.template.id, 'paper-egg')
    assert.deepEqual(body.template.start.args.slice(0, 3), ['java', '-Xmx{{server.memoryMiB}}M', '-jar'])
    assert.deepEqual(body.template.stop[0], { signal: 'SIGINT', timeoutSeconds: 120 })
    const levels = Object.fromEntries(
      body.report.map(({ path, level }: { path: string; level: string }) => [path, level]),
    )
    assert.equal(levels['/config/stop'], 'changed')
    assert.equal(levels['/variables'], 'carried')
    assert.equal(levels['/future_field/hello'], 'dropped')
    assert.equal((await add(EGG, { query: '?id=my-paper' })).body.template.id, 'my-paper')
  })

  test('an id is taken once: already_exists, unless the template is replaced', async () => {
    const template = ownTemplate('replaced')
    await add(template)
    assert.equal((await add(template)).body.code, 'already_exists')
    assert.equal((await add({ ...template, name: 'Other' }, { query: '?replace=true' })).status, 201)
    assert.equal((await service.call('GET', '/templates/replaced')).body.name, 'Other')
    for (const query of ['', '?replace=true'])
      assert.equal((await add(ownTemplate('openttd'), { query })).body.code, 'already_exists')
    const [newest] = (await service.call('GET', '/activity?event=template.*')).body.data
    assert.equal(newest.event, 'template.replaced')
  })

  test('the same Idempotency-Key gets the same answer', async () => {
    const headers = { 'idempotency-key': 'k1', 'content-type': 'application/json' }
    const first = await add(JSON.stringify(ownTemplate('keyed')), { headers })
    const again = await add(JSON.stringify(ownTemplate('keyed')), { headers })
    assert.deepEqual([again.status, again.body], [201, first.body])
    assert.equal((await add(JSON.stringify(ownTemplate('other')), { headers })).body.code, 'idempotency_conflict')
  })

  test('templates are for everybody, so changing them needs templates:write and a token for all servers', async () => {
    const mine = await service.createServer()
    const [reader, tenant] = [await service.mint(['servers:write']), await service.mint(['*'], [mine.id])]
    await add(ownTemplate('theirs'))
    for (const { token } of [reader, tenant]) {
      assert.equal((await add(ownTemplate('forbidden'), { token })).status, 403)
      assert.equal((await service.call('DELETE', '/templates/theirs', { token })).status, 403)
    }
    assert.equal((await service.call('GET', '/templates/forbidden')).status, 404)
  })

  test('game is the id of a template, shipped or your own, or of a known game', async () => {
    await add(ownTemplate('own-game'))
    for (const game of ['own-game', 'generic', 'ark'])
      assert.equal((await service.call('POST', '/servers', { body: { name: 'x', game } })).body.game, game)
    const folders = () => readdirSync(join(service.dataDir, 'servers')).length
    const before = folders()
    const refused = await service.call('POST', '/servers', { body: { name: 'x', game: 'no-such-game' } })
    assert.deepEqual([refused.status, refused.body.errors[0].path], [400, '/game'])
    assert.equal(folders(), before)
    const { id } = await service.createServer()
    assert.equal((await service.call('PATCH', `/servers/${id}`, { body: { game: 'no-such-game' } })).status, 400)
    assert.equal((await service.call('PATCH', `/servers/${id}`, { body: { game: 'own-game' } })).status, 200)
    const listed = (await service.call('GET', '/servers?game=own-game')).body.data
    assert.equal(listed.length, 2)
  })

  test('variables of a server are checked by its template, and secrets are never shown', async () => {
    const template = {
      ...ownTemplate('with-variables'),
      variables: [
        { name: 'PLAYERS', type: 'integer', min: 1, max: 10, default: 5 },
        { name: 'NAME', type: 'text', isRequired: true },
        { name: 'PASSWORD', type: 'secret', minLength: 8 },
        { name: 'LICENCE', type: 'text', isEditable: false, isVisible: false },
      ],
    }
    assert.equal((await add(template)).status, 201)
    const create = (body: object, token = service.adminToken) =>
      service.call('POST', '/servers', { body: { name: 'x', game: 'with-variables', ...body }, token })
    const refused = await create({ variables: { PLAYERS: 11, PASSWORD: 'short', OTHER: 1, NAME: 'a\nb' } })
    assert.deepEqual(refused.body.errors.map(({ path }: { path: string }) => path).toSorted(), [
      '/variables/NAME',
      '/variables/OTHER',
      '/variables/PASSWORD',
      '/variables/PLAYERS',
    ])
    const { body } = await create({ variables: { PLAYERS: '7', PASSWORD: 'swordfish', LICENCE: 'key' } })
    assert.deepEqual(body.variables, { PLAYERS: 7, PASSWORD: null, LICENCE: null })
    const path = `/servers/${body.id}`
    const patch = (change: object, token = service.adminToken) => service.call('PATCH', path, { body: change, token })
    const changed = await patch({ variables: { PLAYERS: null, NAME: 'Castle', PASSWORD: 'swordfish2' } })
    assert.deepEqual(changed.body.variables, { NAME: 'Castle', PASSWORD: null, LICENCE: null })
    assert.equal((await patch({ variables: { PASSWORD: 'short' } })).status, 400)
    const tenant = await service.mint(['servers:read', 'servers:write'], [body.id])
    assert.equal((await patch({ variables: { NAME: 'Keep' } }, tenant.token)).status, 200)
    assert.equal((await patch({ variables: { LICENCE: 'mine' } }, tenant.token)).status, 403)
    const activity = (await service.call('GET', `${path}/activity`)).text
    assert.doesNotMatch(activity + (await service.call('GET', path)).text, /swordfish|"key"/)
    // Another template takes what it knows.
    const other = { ...template, id: 'other-variables', variables: [{ name: 'NAME', type: 'text', maxLength: 10 }] }
    await add(other)
    assert.deepEqual((await patch({ game: 'other-variables' })).body.variables, { NAME: 'Keep' })
    assert.deepEqual((await patch({ game: null })).body.variables, {})
    assert.equal((await patch({ variables: { NAME: 'x' } })).status, 400)
  })

  test('DELETE is refused while a server uses the template, also a deleted server that can be brought back', async () => {
    await add(ownTemplate('in-use'))
    const server = await service.createServer({ game: 'in-use' })
    assert.equal((await remove('in-use')).body.code, 'template_in_use')
    const gone = async (body: object) => {
      const { body: job } = await service.call('DELETE', `/servers/${server.id}`, { body: { name: 'Castle', ...body } })
      await createWorld(service).jobEnded(server.id, job.id)
    }
    await gone({})
    assert.equal((await remove('in-use')).body.code, 'template_in_use')
    await service.call('DELETE', `/servers/${server.id}`, { body: { name: 'Castle', purge: true } })
    await until(async () => (await service.call('GET', `/servers/${server.id}`)).status === 404)
    assert.equal((await remove('in-use')).status, 204)
    assert.equal((await remove('in-use')).status, 404)
    assert.equal((await remove('openttd')).body.code, 'invalid_request')
  })

  test('a template that is replaced while it is deleted is there afterwards, or was deleted after it', async () => {
    for (const isDeletedFirst of [true, false]) {
      const id = `replaced-${isDeletedFirst}`
      await add(ownTemplate(id))
      const requests = [() => remove(id), () => add(ownTemplate(id), { query: '?replace=true' })]
      const replies = await inOrder(service, id, isDeletedFirst ? requests : requests.toReversed(), 'templates')
      const [removed, replaced] = isDeletedFirst ? replies : replies.toReversed()
      assert.deepEqual([removed?.status, replaced?.status], [204, 201])
      const { status } = await service.call('GET', `/templates/${id}`)
      if (engine === 'postgres') assert.equal(status, isDeletedFirst ? 200 : 404)
    }
  })

  test('a template that is deleted while a server is made of it: one of the two is refused, in either order', async () => {
    for (const isDeletedFirst of [true, false]) {
      const id = `race-${isDeletedFirst}`
      await add(ownTemplate(id))
      const create = () => service.call('POST', '/servers', { body: { name: 'x', game: id } })
      const requests = [() => remove(id), create]
      const replies = await inOrder(service, id, isDeletedFirst ? requests : requests.toReversed(), 'templates')
      const [removed, created] = isDeletedFirst ? replies : replies.toReversed()
      const outcome = [removed?.status, created?.status]
      assert.ok(outcome.join() === '204,400' || outcome.join() === '409,201', outcome.join())
      if (engine === 'postgres') assert.equal(removed?.status, isDeletedFirst ? 204 : 409)
      assert.equal((await service.call('GET', `/templates/${id}`)).status, removed?.status === 204 ? 404 : 200)
    }
  })
})
