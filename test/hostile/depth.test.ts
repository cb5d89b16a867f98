// Paths as deep as the service lets them be, and deeper: in one upload form, in directories, and in many requests at once.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { killLeftovers } from '../support/process.ts'
import { until } from '../support/until.ts'
import { attack } from './support/attack.ts'
import { openScene, type Tenant } from './support/scene.ts'
import { sized } from './support/size.ts'

after(killLeftovers)

const MIB = 1024 * 1024
/** As many names as a path of 4,096 bytes has room for, and as many as other services let be made. */
const DEEPEST = [1900, 600, 128]

const down = (levels: number, name = 'd') => `/${name}`.repeat(levels)

/** Files whose paths have this many names, all but the first of them `d`, until the form has its size. */
function deepForm(names: number, bytes: number): Buffer {
  const part = (file: number) =>
    `--b\r\nContent-Disposition: form-data; name="files"; filename="${file}${down(names - 1)}"\r\n\r\nx\r\n`
  const parts = Array.from({ length: Math.ceil(bytes / part(0).length) }, (_, file) => part(file))
  return Buffer.from(`${parts.join('')}--b--\r\n`)
}

async function sendForm({ call, serverId }: Tenant, form: Buffer, signal: AbortSignal) {
  const link: string = (await call('GET', `/files/${serverId}/upload`)).body.url
  const headers = { 'content-type': 'multipart/form-data; boundary=b' }
  const reply = await fetch(link, { method: 'POST', headers, body: form as BodyInit, signal })
  return { status: reply.status, code: ((await reply.json()) as { code?: string }).code }
}

/** Makes the deepest directory that it can, and answers how deep that is. */
async function digDown({ call, serverId }: Tenant): Promise<number> {
  for (const levels of DEEPEST) {
    const body = { path: down(levels - 1), name: 'd' }
    if ((await call('POST', `/files/${serverId}/folder`, { body })).status === 201) return levels
  }
  return 0
}

test('one upload form of megabytes of deep names', async (t) => {
  const scene = await openScene(t)
  const answers: Awaited<ReturnType<typeof sendForm>>[] = []
  await attack(scene, async (attacker, signal) => {
    answers.push(await sendForm(attacker, deepForm(1900, sized(5, 10) * MIB), signal))
    answers.push(await sendForm(attacker, deepForm(128, sized(1, 10) * MIB), signal))
  })
  assert.deepEqual(
    answers.map(({ status, code }) => [Math.floor(status / 100), code]),
    [
      [4, 'invalid_path'],
      [4, 'too_large'],
    ],
  )
  const { attacker } = scene
  assert.deepEqual((await attacker.call('GET', `/files/${attacker.serverId}`)).body.data, [])
})

test('a directory that is made 600 deep does not disable its server', async (t) => {
  const scene = await openScene(t)
  const { attacker } = scene
  const files = `/files/${attacker.serverId}`
  await attack(scene, async ({ call, put, serverId }) => {
    assert.ok((await digDown(attacker)) > 0)
    assert.equal((await put('/world.dat', 'the world')).status, 201)
    assert.equal((await call('GET', `${files}/usage`)).status, 200)
    assert.equal((await call('POST', `${files}/copy`, { body: { location: '/d' } })).status, 201)
    const { body: backup } = await call('POST', `/backups/${serverId}`, { body: {} })
    const made = await until(async () => {
      const { body } = await call('GET', `/backups/${serverId}/${backup.id}`)
      return body.completedAt !== null && body
    })
    assert.equal(made.status, 'completed')
    const gone = await call('DELETE', files, { body: { files: ['/d', '/d copy'] } })
    assert.deepEqual(gone.body.deleted, ['/d', '/d copy'])
    assert.equal((await call('DELETE', `${files}/trash`)).status, 200)
  })
  const { status, body } = await attacker.call('POST', `${files}/folder`, { body: { path: down(599), name: 'd' } })
  assert.deepEqual([status, body.code], [400, 'invalid_path'])
})

test('requests that each name a thousand deep paths, twenty at once', async (t) => {
  const scene = await openScene(t)
  const { attacker } = scene
  const levels = await digDown(attacker)
  const files = Array.from({ length: 1000 }, (_, index) => `absent-${index}`)
  const statuses = new Set<number>()
  await attack(scene, async ({ call, serverId }, signal) => {
    const attempt = async () => {
      const body = { root: down(levels), files }
      statuses.add((await call('DELETE', `/files/${serverId}`, { body, signal })).status)
    }
    for (let round = 0; round < sized(2, 20); round++) await Promise.all(Array.from({ length: 20 }, attempt))
  })
  assert.ok(
    [...statuses].every((status) => status < 500),
    [...statuses].join(),
  )
})
