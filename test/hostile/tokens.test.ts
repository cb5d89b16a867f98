// A token that ends, by its time or by its owner, while its links are at work; and what is guessed of another tenant.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readdirSync, truncateSync, writeFileSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { killLeftovers } from '../support/process.ts'
import { until } from '../support/until.ts'
import { attack } from './support/attack.ts'
import { onEngines } from './support/engine.ts'
import { createTenant, openScene, type Scene, TENANT_SCOPES } from './support/scene.ts'

after(killLeftovers)

const TUS = { 'tus-resumable': '1.0.0' }
/** More than the buffers of both sides take. */
const LARGE_BYTES = 200_000_000
const LIFE_MS = 2000
const LONGEST_LIFE_MS = 60_000

interface Minted {
  id: string
  token: string
}

function makeLarge(path: string): void {
  writeFileSync(path, 'here')
  truncateSync(path, LARGE_BYTES)
}

async function mint({ call, attacker }: Scene, expiresAt?: string): Promise<Minted> {
  const body = {
    name: 'short',
    scopes: TENANT_SCOPES,
    servers: [attacker.serverId],
    ...(expiresAt ? { expiresAt } : {}),
  }
  const { body: minted } = await call('POST', '/tokens', { body })
  return minted
}

/** The beginning of an answer that is then not read. */
async function begin(t: TestContext, url: string): Promise<IncomingMessage> {
  const sent = httpRequest(url)
  t.after(() => sent.destroy())
  sent.on('error', () => {}).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  assert.equal(response.statusCode, 200)
  return response.on('error', () => {})
}

/** An upload of which half has been sent. */
async function halfSent(t: TestContext, url: string, method: string, headers: Record<string, string>, head = '') {
  const sent = httpRequest(url, { method, headers })
  t.after(() => sent.destroy())
  const ended = new Promise<number | undefined>((resolve) => {
    sent.on('error', () => resolve(undefined)).on('response', (response) => resolve(response.resume().statusCode))
  })
  sent.write(Buffer.concat([Buffer.from(head), randomBytes(300_000)]))
  return { sent, ended }
}

async function workUnder(t: TestContext, { attacker }: Scene, { token }: Minted) {
  const files = `/files/${attacker.serverId}`
  const link = async (path: string) => (await attacker.call('GET', path, { token })).body.url as string
  const downloads = [`${files}/download?path=/large`, `${files}/download?path=/room&format=tar`]
  const urls = await Promise.all(downloads.map(link))
  const upload = await link(`${files}/upload`)
  const made = await fetch(upload, {
    method: 'POST',
    headers: { ...TUS, 'upload-length': '600000', 'upload-metadata': `filename ${btoa('tus.bin')}` },
  })
  assert.equal(made.status, 201)
  const tus = new URL(made.headers.get('location') ?? '', upload).href
  const offset = { ...TUS, 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' }
  const part = '--b\r\ncontent-disposition: form-data; name="files"; filename="form.bin"\r\n\r\n'
  const form = { 'content-type': 'multipart/form-data; boundary=b' }
  return {
    urls: [...urls, tus],
    upload,
    readings: await Promise.all(urls.map((url) => begin(t, url))),
    sendings: [
      await halfSent(t, tus, 'PATCH', { ...offset, 'content-length': '600000' }),
      await halfSent(t, upload, 'POST', form, part),
    ],
  }
}

/** A busy machine may take longer to begin all of it than the token lives; then another one lives longer. */
async function workUntilExpired(t: TestContext, scene: Scene) {
  for (let lifeMs = LIFE_MS; ; lifeMs *= 3) {
    const expiresAt = Date.now() + lifeMs
    const minted = await mint(scene, new Date(expiresAt).toISOString())
    try {
      return { token: minted.token, work: await workUnder(t, scene, minted) }
    } catch (error) {
      if (Date.now() < expiresAt || lifeMs > LONGEST_LIFE_MS) throw error
    }
  }
}

/** Cut, wherever it was: an answer is not whole, and an upload is refused or cut. */
async function assertEnded({ readings, sendings, urls, upload }: Awaited<ReturnType<typeof workUnder>>): Promise<void> {
  const isOver = async () => (await fetch(upload, { method: 'OPTIONS', headers: TUS })).status === 404
  await until(isOver)
  for (const response of readings) {
    let bytes = 0
    response.on('data', (chunk: Buffer) => (bytes += chunk.length))
    await new Promise((resolve) => response.once('close', resolve).resume())
    assert.ok(bytes < LARGE_BYTES, `${bytes} bytes were sent: the whole of it`)
  }
  for (const { sent, ended } of sendings) {
    const status = await ended
    assert.ok(status === undefined || status === 404, `answered ${status}`)
    sent.destroy()
  }
  for (const url of urls) assert.equal((await fetch(url, { method: 'HEAD', headers: TUS })).status, 404)
  const again = await fetch(upload, { method: 'POST', headers: { ...TUS, 'upload-length': '1' } })
  assert.equal(again.status, 404)
}

onEngines('a token that has ended', (engine) => {
  test('ends every transfer of its links, and they open nothing afterwards, nor after a restart', async (t) => {
    const scene = await openScene(t, { engine })
    const { attacker, call, keeper } = scene
    mkdirSync(join(attacker.folder, 'room'))
    for (const name of ['large', 'room/large']) makeLarge(join(attacker.folder, name))
    const works: Awaited<ReturnType<typeof workUnder>>[] = []
    await attack(scene, async () => {
      const revoked = await mint(scene)
      works.push(await workUnder(t, scene, revoked))
      assert.equal((await call('DELETE', `/tokens/${revoked.id}`)).status, 204)
      const { token, work } = await workUntilExpired(t, scene)
      works.push(work)
      for (const each of works) await assertEnded(each)
      const denied = await attacker.call('GET', '/servers', { token })
      assert.equal(denied.status, 401)
    })
    assert.deepEqual(readdirSync(attacker.folder).sort(), ['large', 'room'])
    await keeper.kill()
    await keeper.start()
    const now = (url: string) => url.replace(/^http:\/\/[^/]+/, keeper.url)
    for (const { urls, upload } of works) {
      for (const url of urls) assert.equal((await fetch(now(url), { method: 'HEAD', headers: TUS })).status, 404)
      assert.equal((await fetch(now(upload), { method: 'OPTIONS', headers: TUS })).status, 404)
    }
  })

  test('what is guessed of another tenant is not there', async (t) => {
    const scene = await openScene(t, { engine, scopes: [...TENANT_SCOPES, 'servers:write'] })
    const { attacker, call, keeper } = scene
    // Not the victim, whose backups may hold nothing but what it wrote itself.
    const other = await createTenant(keeper, call, 'Other', TENANT_SCOPES)
    await attack(scene, async () => {
      await other.put('/mine.txt', 'mine')
      const jobs = [
        await other.call('POST', `/files/${other.serverId}/pack`, {
          body: { files: ['mine.txt'], target: '/mine.tar', format: 'tar' },
        }),
        await other.call('POST', `/files/${other.serverId}/unpack`, {
          body: { path: '/mine.txt', directory: '/out' },
        }),
      ].map(({ body }) => body.id as string)
      const { body: made } = await other.call('POST', `/backups/${other.serverId}`, { body: {} })
      const trashed = await other.call('DELETE', `/files/${other.serverId}`, { body: { files: ['mine.txt'] } })
      assert.equal(trashed.status, 200)
      const items = (await other.call('GET', `/files/${other.serverId}/trash`)).body.data as { id: string }[]
      const absent = (await attacker.call('GET', `/servers/${attacker.serverId}/jobs/job_${'0'.repeat(26)}`)).body
      for (const serverId of [attacker.serverId, other.serverId])
        for (const id of [...jobs, ...jobs.map((job) => job.toUpperCase()), `${jobs[0]}/../${jobs[1]}`]) {
          for (const method of ['GET', 'DELETE']) {
            const reply = await attacker.call(method, `/servers/${serverId}/jobs/${encodeURIComponent(id)}`)
            assert.ok([400, 404].includes(reply.status), `${method} ${id}: ${reply.text}`)
            if (reply.status === 404) assert.equal(reply.body.code, absent.code)
          }
        }
      for (const [method, path] of [
        ['GET', `/backups/${attacker.serverId}/${made.id}`],
        ['DELETE', `/backups/${attacker.serverId}/${made.id}`],
        ['POST', `/backups/${attacker.serverId}/${made.id}/restore`],
        ['POST', `/backups/${attacker.serverId}/${made.id}/lock`],
        ['POST', `/files/${attacker.serverId}/trash/${items[0]?.id}/restore`],
      ] as const) {
        const isRestore = path.startsWith('/backups/') && path.endsWith('/restore')
        const reply = await attacker.call(method, path, isRestore ? { body: { mode: 'merge' } } : {})
        assert.equal(reply.status, 404, `${method} ${path}: ${reply.text}`)
      }
      for (const id of jobs) {
        const { status } = await other.ended(id)
        assert.notEqual(status, 'cancelled')
      }
    })
  })
})
