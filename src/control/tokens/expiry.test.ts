// What a token has signed ends when the token does, by itself: nobody has to revoke it.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { after, before, test } from 'node:test'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { until } from '../../../test/support/until.ts'

const LIVES_MS = 4000
const LIVES_AT_MOST_MS = 120_000
const PART_HEAD = '--b\r\ncontent-disposition: form-data; name="files"; filename="slow.bin"\r\n\r\n'

let service: TestService
before(async () => {
  service = await startTestService()
})
after(() => service.stop())

/** Links of a token that expires. On a busy machine it may have expired before; then another one lives longer. */
async function linksUnder(id: string) {
  for (let lifeMs = LIVES_MS; ; lifeMs *= 3) {
    const expiresAt = new Date(Date.now() + lifeMs).toISOString()
    const { token } = await service.mint(['files:read', 'files:write'], [id], { expiresAt })
    const download = (await service.call('GET', `/files/${id}/download?path=/a.txt`, { token })).body
    const upload = (await service.call('GET', `/files/${id}/upload`, { token })).body
    const status = download.url && upload.url ? (await fetch(download.url)).status : undefined
    if (status !== 200 && Date.now() >= Date.parse(expiresAt) && lifeMs < LIVES_AT_MOST_MS) continue
    assert.equal(status, 200)
    assert.deepEqual([download.expiresAt, upload.expiresAt], [expiresAt, expiresAt])
    return { token, expiresAt, download, upload }
  }
}

test('A link stops working when its token expires or is revoked, even in the middle of a transfer.', async () => {
  const { id } = await service.createServer()
  const content = { body: 'hello', headers: { 'content-type': 'application/octet-stream' } }
  await service.call('PUT', `/files/${id}/content?path=/a.txt`, content)
  const longer = (await service.call('GET', `/files/${id}/download?path=/a.txt`)).body
  const { token, expiresAt, download, upload } = await linksUnder(id)

  // Bytes flow, which renews the link of an upload, until the token is gone.
  const headers = { 'content-type': 'multipart/form-data; boundary=b' }
  const sending = request(upload.url, { method: 'POST', headers }).on('error', () => {})
  sending.write(PART_HEAD)
  const trickle = setInterval(() => sending.write('x'), 50)
  const [answer] = (await once(sending, 'response')) as [IncomingMessage]
  clearInterval(trickle)
  sending.destroy()
  assert.equal(answer.statusCode, 404)
  assert.ok(Date.now() >= Date.parse(expiresAt))

  await until(async () => (await service.call('GET', `/files/${id}`, { token })).status === 401)
  assert.equal((await fetch(download.url)).status, 404)
  assert.equal((await fetch(upload.url, { method: 'POST', headers, body: '--b--\r\n' })).status, 404)
  const tus = { 'tus-resumable': '1.0.0', 'upload-length': '3', 'upload-metadata': 'filename YQ==' }
  assert.equal((await fetch(upload.url, { method: 'POST', headers: tus })).status, 404)
  assert.equal((await fetch(longer.url)).status, 200, 'a link of another token goes on')
  assert.deepEqual(
    (await service.call('GET', `/files/${id}`)).body.data.map((entry: { name: string }) => entry.name),
    ['a.txt'],
  )
})
