// CVE-2026-54593 and what is near it: somebody else's link, a link for something else, and a link that has been given away.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, statSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { layout } from '../../src/agent/layout.ts'
import type { CallOptions, Reply } from '../support/call.ts'
import { killLeftovers } from '../support/process.ts'
import { until } from '../support/until.ts'
import { attack } from './support/attack.ts'
import { openScene, type Scene, TENANT_SCOPES } from './support/scene.ts'

after(killLeftovers)

const TUS = { 'tus-resumable': '1.0.0' }
const BYTES = { ...TUS, 'content-type': 'application/offset+octet-stream' }
const named = (name: string) => `filename ${Buffer.from(name).toString('base64')}`

type Call = (method: string, path: string, options?: CallOptions) => Promise<Reply>

async function tokenFor({ call }: Scene, serverId: string): Promise<string> {
  const body = { name: 'another', scopes: TENANT_SCOPES, servers: [serverId] }
  return (await call('POST', '/tokens', { body })).body.token
}

const uploadLink = async (call: Call, serverId: string, token?: string) =>
  (await call('GET', `/files/${serverId}/upload`, token ? { token } : {})).body.url as string

const sizesIn = (folder: string) => readdirSync(folder).map((name) => statSync(join(folder, name)).size)

/** One character of the signature is another. */
const tampered = (url: string) => url.replace(/.(?=.{20}$)/, (one) => (one === 'A' ? 'B' : 'A'))

/** A PATCH whose body is sent as it is asked for. */
function slowPatch(url: string, length: number) {
  const sent = httpRequest(url, {
    method: 'PATCH',
    headers: { ...BYTES, 'upload-offset': '0', 'content-length': length },
  })
  const status = once(sent, 'response').then(([response]) => response.resume().statusCode as number)
  status.catch(() => {})
  return { sent, status }
}

test("another's link neither aborts, reads, continues nor deletes an upload", async (t) => {
  const scene = await openScene(t)
  const { attacker, call } = scene
  await attack(scene, async () => {
    const serverId: string = (await call('POST', '/servers', { body: { name: 'Uploader' } })).body.id
    const own = await uploadLink(call, serverId, await tokenFor(scene, serverId))
    const content = randomBytes(300_000)
    const headers = { ...TUS, 'upload-length': String(content.length), 'upload-metadata': named('world.bin') }
    const created = await fetch(own, { method: 'POST', headers })
    assert.equal(created.status, 201)
    const address = new URL(created.headers.get('location') ?? '', own).href
    const tusId = address.split('/').at(-1)
    const { sent, status } = slowPatch(address, content.length)
    sent.write(content.subarray(0, 200_000))
    const { staging } = layout(scene.keeper.dataDir).server(serverId)
    await until(async () => sizesIn(staging).some((bytes) => bytes >= 65_536))

    const strangers = [
      await uploadLink(attacker.call, attacker.serverId),
      // For the same server, and made by somebody else.
      await uploadLink(call, serverId, await tokenFor(scene, serverId)),
    ]
    for (const link of strangers)
      for (const method of ['HEAD', 'PATCH', 'DELETE']) {
        const body = method === 'PATCH' ? { body: 'mine' } : {}
        const reply = await fetch(`${link}/${tusId}`, { method, headers: { ...BYTES, 'upload-offset': '0' }, ...body })
        assert.equal(reply.status, 404, `${method}: ${await reply.text()}`)
      }
    sent.end(content.subarray(200_000))
    assert.equal(await status, 204)
    const read = await fetch(`${attacker.url}/v1/game/files/${serverId}/content?path=/world.bin`, {
      headers: { authorization: `Bearer ${scene.keeper.token}` },
    })
    assert.ok(Buffer.from(await read.arrayBuffer()).equals(content))
  })
})

test('a link is good for what it was made for, and dies with its token', async (t) => {
  const scene = await openScene(t)
  const { attacker, call, victim } = scene
  await attack(scene, async () => {
    await attacker.put('/own.txt', 'mine')
    const download = (await attacker.call('GET', `/files/${attacker.serverId}/download?path=/own.txt`)).body
      .url as string
    const upload = await uploadLink(attacker.call, attacker.serverId)
    const swapped = [download.replace('/downloads/', '/uploads/'), tampered(upload)]
    const form = () => {
      const files = new FormData()
      files.append('files', new Blob(['mine']), 'planted.txt')
      return files
    }
    for (const url of [...swapped, upload.replace(attacker.serverId, victim.serverId).slice(0, -4)])
      assert.equal((await fetch(url, { method: 'POST', body: form() })).status, 404, url)
    assert.equal((await fetch(upload.replace('/uploads/', '/downloads/'))).status, 404)
    assert.equal((await fetch(upload, { method: 'POST', body: form() })).status, 200)
    assert.equal((await call('DELETE', `/tokens/${attacker.tokenId}`)).status, 204)
    for (const url of [upload, download]) {
      const reply = await fetch(url, url === upload ? { method: 'POST', body: form() } : {})
      assert.equal(reply.status, 404)
    }
  })
})
