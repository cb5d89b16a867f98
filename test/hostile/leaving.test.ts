// Clients that leave, at any moment of any request, with a part of their body sent or a part of the answer read. What was begun for them
// ends or is finished; none of it ends the service, and nothing stays open or locked.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { CallOptions } from '../support/call.ts'
import { killLeftovers } from '../support/process.ts'
import { until } from '../support/until.ts'
import { attack } from './support/attack.ts'
import { openPaths } from './support/descriptors.ts'
import { type Asked, askAndLeave, inBytes, type Leaving } from './support/leaving.ts'
import { openScene, type Tenant } from './support/scene.ts'
import { sized } from './support/size.ts'

after(killLeftovers)

const AT_ONCE = 12
/** Of a client that waits for an answer. Streams of events have none for a while. */
const PATIENCE_MS = 2000
const CONTENT = randomBytes(3_000_000)
const TUS = { 'tus-resumable': '1.0.0', 'content-type': 'application/offset+octet-stream' }
const STREAM = { accept: 'text/event-stream' }
const COPIES = ['/world/region copy', '/world/region copy 2', '/world/large copy']
const FORMATS = ['zip', 'tar', 'tar.gz', 'tar.zst']

const pick = <T>(of: readonly T[]): T => of[Math.floor(Math.random() * of.length)] as T

function plant({ folder }: Tenant): void {
  mkdirSync(join(folder, 'world/region'), { recursive: true })
  for (let index = 0; index < 200; index++)
    writeFileSync(join(folder, `world/region/${index}.txt`), `region ${index}\n`)
  for (const name of ['world/large', 'world/another']) writeFileSync(join(folder, name), CONTENT)
}

/** Everything that a tenant can ask for which takes a moment, or is answered piece by piece. */
async function askables(tenant: Tenant, backupId: string): Promise<(() => Asked)[]> {
  const { serverId, call } = tenant
  const [files, backups, servers] = ['files', 'backups', 'servers'].map((kind) => `/v1/game/${kind}/${serverId}`)
  const one = `${backups}/${backupId}`
  const pathOf = async (path: string, method = 'GET', options: CallOptions = {}) => {
    const { status, text, body } = await call(method, path, options)
    assert.equal(status, 200, text)
    return new URL(body.url as string).pathname
  }
  const upload = await pathOf(`/files/${serverId}/upload`)
  const links = [await pathOf(`/files/${serverId}/download?path=/world/large`)]
  for (const format of FORMATS) {
    links.push(await pathOf(`/files/${serverId}/download?path=/world&format=${format}`))
    links.push(await pathOf(`/backups/${serverId}/${backupId}/download`, 'POST', { body: { format } }))
  }
  const range = () => ({ range: `bytes=${Math.floor(Math.random() * 2e6)}-${Math.floor(2e6 + Math.random() * 9e5)}` })
  const get = (path: string, headers = {}) => ({ method: 'GET', path, headers })
  const json = (method: string, path: string, body: object) => ({
    method,
    path,
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify(body)),
  })
  const packed = () => {
    const format = pick(FORMATS)
    return { root: '/', files: ['world'], format, target: `/packed.${format}` }
  }
  const form = () => {
    const head = `--b\r\ncontent-disposition: form-data; name="files"; filename="${pick(['a', 'b', 'c'])}"\r\n\r\n`
    const body = Buffer.concat([Buffer.from(head), CONTENT, Buffer.from('\r\n--b--\r\n')])
    return { method: 'POST', path: upload, headers: { 'content-type': 'multipart/form-data; boundary=b' }, body }
  }
  const begunUpload = () => ({
    method: 'POST',
    path: upload,
    headers: {
      ...TUS,
      'upload-length': String(CONTENT.length),
      'upload-metadata': `filename ${btoa(pick(['t', 'u']))}`,
    },
    body: CONTENT,
  })
  return [
    () => get(`${files}?path=/world/region&limit=100`),
    () => get(`${files}/content?path=/world/large`),
    () => get(`${files}/content?path=/world/large`, range()),
    () => get(`${files}/search?q=region&content=true`),
    () => get(`${files}/usage`),
    () => get(`${files}/trash`),
    () => get(`${files}/versions?path=/world/large`),
    () => get(pick(links)),
    () => get(pick(links), range()),
    () => get(`${one}/download?format=${pick(FORMATS)}`),
    () => get(`${one}/files?path=/world/region`),
    () => get(`${one}/files/content?path=/world/large`),
    () => get(`${one}/files/content?path=/world/large`, range()),
    () => get(one, STREAM),
    () => get(`${servers}/activity`, { accept: pick(['application/x-ndjson', 'text/csv', 'text/event-stream']) }),
    () => get(`${servers}/activity/verify`),
    () => ({ method: 'PUT', path: `${files}/content?path=/put-${pick(['a', 'b'])}`, body: CONTENT }),
    form,
    begunUpload,
    () => json('POST', `${files}/pack`, packed()),
    () => json('POST', `${files}/unpack`, { path: packed().target, directory: '/unpacked', overwrite: true }),
    () => json('POST', `${files}/copy`, { location: pick(['/world/region', '/world/large']) }),
    () => json('POST', `${files}/move`, { moves: [{ from: pick(COPIES), to: pick(COPIES) }] }),
    () => json('DELETE', files as string, { root: '/', files: [pick([...COPIES, '/unpacked', '/a'])] }),
    () => json('POST', `${backups}/preview`, {}),
    () => json('POST', backups as string, {}),
    () => json('POST', `${one}/restore`, { mode: 'merge', safetyBackup: false }),
    () => ({ method: 'POST', path: `${one}/verify` }),
  ]
}

/** Small ones as often as large ones. */
const upTo = (most: number) => most ** Math.random() - 1

/** Half of them leave at a moment, the others at a byte of the answer. */
const leaving = (): Leaving => ({
  how: pick(['reset', 'end', 'half-closed']),
  ...(Math.random() < 0.5
    ? { sent: pick([1, Math.random()]), readBytes: CONTENT.length, afterMs: upTo(300) }
    : { sent: 1, readBytes: pick([0, upTo(CONTENT.length)]), afterMs: PATIENCE_MS }),
})

/** What the service has open of a server: its files, and what is staged, in the trash or kept beside them. */
const openOf = (pid: number, { folder }: Tenant) =>
  openPaths(pid)
    .filter((path) => path.startsWith(dirname(folder)))
    .sort()

test('clients that leave at any moment of any request leave nothing behind', async (t) => {
  const scene = await openScene(t, { settings: { GAMEKEEPER_RATE_LIMIT: '0' } })
  const { attacker, keeper } = scene
  const { serverId, call } = attacker
  plant(attacker)
  const backUp = async () => {
    const { body } = await call('POST', `/backups/${serverId}`, { body: {} })
    const of = `/backups/${serverId}/${body.id}`
    return await until(async () => {
      const backup = (await call('GET', of)).body
      return backup.status === 'completed' || backup.status === 'failed' ? backup : undefined
    })
  }
  const { id } = await backUp()
  const asked = await askables(attacker, id)
  const before = openOf(keeper.pid, attacker)
  const answers = new Map<number | undefined, number>()
  await attack(scene, async () => {
    let left = sized(600)
    const client = async () => {
      while (left-- > 0) {
        const bytes = inBytes(pick(asked)(), attacker.token)
        const status = await askAndLeave(attacker.url, bytes, leaving())
        answers.set(status, (answers.get(status) ?? 0) + 1)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, client))
  })
  scene.say(`answered: ${JSON.stringify(Object.fromEntries(answers))}`)
  assert.ok(answers.has(undefined) && answers.has(200) && answers.has(202))
  for (const status of ['queued', 'running'])
    await until(async () => (await call('GET', `/servers/${serverId}/jobs?status=${status}`)).body.data.length === 0)
  await until(async () => isDeepStrictEqual(openOf(keeper.pid, attacker), before)).catch(() =>
    assert.deepEqual(openOf(keeper.pid, attacker), before),
  )
  assert.equal((await attacker.put('/world/large', 'as it is now')).status, 200)
  assert.equal((await backUp()).status, 'completed')
})
