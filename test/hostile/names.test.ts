// Names that every object has fields of, in every field that takes a name; and names of subdomains that look like others.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { archiveOf, entry } from '../../src/agent/files/archives/archives.testing.ts'
import { ZONE } from '../faults/history/keeper.ts'
import { killLeftovers } from '../support/process.ts'
import { attack } from './support/attack.ts'
import { openScene, TENANT_SCOPES } from './support/scene.ts'

after(killLeftovers)

const NAMES = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '__defineSetter__']
const base64 = (text: string) => Buffer.from(text).toString('base64')

test('a name that every object has a field of is a name like any other, wherever one is taken', async (t) => {
  const scene = await openScene(t, { scopes: [...TENANT_SCOPES, 'servers:write'] })
  const { attacker } = scene
  const { call, serverId, put, ended, folder } = attacker
  const files = `/files/${serverId}`
  await attack(scene, async () => {
    for (const name of NAMES) {
      assert.equal((await put(`/${name}/${name}`, name)).status, 201)
      assert.equal((await call('GET', `${files}/content?path=/${name}/${name}`)).text, name)
      const moves = { moves: [{ from: `/${name}/${name}`, to: `/moved/${name}` }] }
      assert.equal((await call('POST', `${files}/move`, { body: moves })).status, 200)
      assert.equal((await call('POST', `${files}/copy`, { body: { location: `/moved/${name}` } })).status, 201)
      const found = await call('GET', `${files}/search?q=${name}`)
      assert.ok(found.body.data.some(({ path }: { path: string }) => path === `/moved/${name}`))
      const gone = await call('DELETE', files, { body: { files: [`/moved/${name}`, name] } })
      assert.deepEqual(gone.body.deleted, [`/moved/${name}`, name])

      // Sent as text: an object literal would set its prototype by it.
      const labels = `{"labels":{"${name}":"mine"}}`
      const changed = await call('PATCH', `/servers/${serverId}`, {
        body: labels,
        headers: { 'content-type': 'application/json' },
      })
      assert.ok([200, 400].includes(changed.status), changed.text)
      if (changed.status === 200) assert.equal(Object.entries(changed.body.labels).flat().join(), `${name},mine`)
      for (const path of [
        `${files}/folder`,
        `/backups/${serverId}`,
        `${files}/move`,
        `/subdomains/${serverId}/subdomains`,
      ]) {
        const body = `{"${name}":{"isAdmin":true},"name":"x"}`
        const refused = await call('POST', path, { body, headers: { 'content-type': 'application/json' } })
        assert.equal(refused.status, 400, `${path} ${refused.text}`)
      }
      for (const query of [`${name}=x`, `${name}[a]=x`, `path=/&${name}=x`])
        assert.equal((await call('GET', `${files}?${query}`)).status, 400, query)
      for (const query of [`event=${name}`, `actor=${name}`, `q=${name}`, `event=${name}.*`]) {
        const { status } = await call('GET', `/servers/${serverId}/activity?${query}`)
        assert.ok([200, 400].includes(status), `${query}: ${status}`)
      }
      for (const path of [
        `/servers/${name}`,
        `/servers/${serverId}/jobs/${name}`,
        `/backups/${serverId}/${name}`,
        `${files}/trash/${name}`,
      ])
        assert.ok([400, 404, 405].includes((await call('GET', path)).status), path)
    }
    await uploadAll()
    await unpackAll()
  })
  assert.equal(({} as { isAdmin?: boolean }).isAdmin, undefined)

  async function uploadAll(): Promise<void> {
    const link: string = (await call('GET', `${files}/upload`)).body.url
    for (const name of NAMES) {
      const form = new FormData()
      form.append(name, 'x')
      form.append('files', new Blob([name]), name)
      const sent = await fetch(link, { method: 'POST', body: form })
      assert.ok([200, 400].includes(sent.status), await sent.text())
      const metadata = `${name} ${base64('x')},filename ${base64(`tus-${name}`)}`
      const headers = { 'tus-resumable': '1.0.0', 'upload-length': '0', 'upload-metadata': metadata }
      const made = await fetch(link, { method: 'POST', headers })
      assert.ok([201, 400].includes(made.status), await made.text())
      const own = { ...headers, 'upload-metadata': `filename ${base64(name)}` }
      assert.equal((await fetch(`${link}?directory=/tus`, { method: 'POST', headers: own })).status, 201)
      assert.ok(readdirSync(join(folder, 'tus')).includes(name))
    }
  }

  async function unpackAll(): Promise<void> {
    for (const format of ['zip', 'tar'] as const) {
      const members = NAMES.map((name) => entry(`${name}/${name}`, { text: name }))
      await put(`/members.${format}`, await archiveOf(format, members))
      const body = { path: `/members.${format}`, directory: `/${format}` }
      const job = await ended((await call('POST', `${files}/unpack`, { body })).body.id)
      assert.equal(job.status, 'completed', JSON.stringify(job))
      for (const name of NAMES) assert.equal(readFileSync(join(folder, format, name, name), 'utf8'), name)
    }
  }
})

test('subdomains that look like others, or like nothing, are lowercase letters, digits and hyphens or refused', async (t) => {
  const scene = await openScene(t)
  const { call, serverId } = scene.attacker
  const base = `/subdomains/${serverId}/subdomains`
  const odd = [
    ...NAMES,
    'ＡＤＭＩＮ',
    'аdmin',
    'ADMIN',
    'Admin1',
    'NS5',
    'K', // KELVIN SIGN lowercases to k
    'İ',
    'ß',
    'ſ',
    'castle\u200b',
    'castle\u0000',
    'castle.',
    'cas.tle',
    '*',
    '@',
    '_dmarc',
    '-castle',
    'castle-',
    'xn--80ak6aa92e',
    'a'.repeat(63),
    'a'.repeat(64),
    'a'.repeat(1000),
    '',
    ' castle ',
    '۱۲۳',
    '🏰',
  ]
  await attack(scene, async () => {
    const given: string[] = []
    for (const name of odd) {
      const made = await call('POST', base, { body: { name, zone: ZONE } })
      assert.ok([201, 202, 400, 409].includes(made.status), `${JSON.stringify(name)}: ${made.text}`)
      if (made.status < 300) given.push(made.body.name)
    }
    for (const name of given) {
      assert.match(name, /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/)
      assert.doesNotMatch(name, /^(admin\d*|ns\d+|mx\d+|xn--.*)$/)
    }
    assert.equal((await call('POST', base, { body: { name: 'Castle', zone: ZONE } })).body.name, 'castle')
    const again = await call('POST', base, { body: { name: 'cASTLE', zone: ZONE.toUpperCase() } })
    assert.ok([400, 409].includes(again.status), again.text)
    const { body } = await call('GET', `${base}?limit=100`)
    const listed = (body.data as { name: string }[]).map(({ name }) => name).sort()
    assert.deepEqual(listed, [...given, 'castle'].sort())
  })
})
