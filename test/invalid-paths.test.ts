// A path that is refused is named by the field that held it, and by its index in a list: every one of them, before
// anything is touched.
import assert from 'node:assert/strict'
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { onBothEngines } from './support/engines.ts'
import { send } from './support/send.ts'
import { startTestService, type TestService } from './support/service.ts'

onBothEngines('invalid paths', (engine) => {
  let service: TestService
  let serverId: string
  let dir: string
  before(async () => {
    service = await startTestService({ engine })
  })
  after(() => service.stop())
  beforeEach(async () => {
    serverId = (await service.createServer()).id
    dir = join(service.dataDir, 'servers', serverId, 'files')
    await mkdir(join(dir, 'world'))
    await writeFile(join(dir, 'keep.txt'), 'x')
    await symlink('/etc', join(dir, 'out'))
  })

  interface Refused {
    status: number
    body: { code: string; detail: string; errors?: { path: string; message: string }[] }
  }

  /** What the answer says is at fault. */
  function fieldsOf({ status, body }: Refused): string[] {
    assert.deepEqual([status, body.code], [400, 'invalid_path'], JSON.stringify(body))
    const { errors = [] } = body
    assert.equal(body.detail, errors[0]?.message, 'the detail is the first of them')
    for (const { message } of errors) assert.match(message, /^[^\n]+\.$/)
    return errors.map(({ path }) => path)
  }

  const refused = async (method: string, at: string, body?: unknown) =>
    fieldsOf(await service.call(method, `/files/${serverId}${at}`, { body }))

  test('every entry at fault is named, and nothing is changed', async () => {
    const files = ['keep.txt', '..', '', 'world', '.', 'a/../..', 'out/passwd', '..']
    assert.deepEqual(await refused('DELETE', '', { files }), [
      '/files/1',
      '/files/2',
      '/files/4',
      '/files/5',
      '/files/7',
    ])
    assert.deepEqual(await refused('DELETE', '', { files: ['keep.txt', 'out/passwd', 'out/hosts'] }), [
      '/files/1',
      '/files/2',
    ])
    assert.deepEqual(await refused('DELETE', '', { root: '/../x', files: ['keep.txt', '..'] }), ['/root', '/files/1'])
    assert.deepEqual(await refused('DELETE', '', { root: '/out', files: ['passwd', 'hosts'] }), ['/root'])
    assert.deepEqual(await refused('POST', '/mode', { files: ['keep.txt', 'out', '..'], mode: '0600' }), ['/files/2'])
    assert.deepEqual(await refused('POST', '/mode', { files: ['out', 'keep.txt', 'out'], mode: '0600' }), ['/files/0'])
    const long = await service.call('DELETE', `/files/${serverId}`, { body: { files: Array(1000).fill('..') } })
    assert.equal(fieldsOf(long).length, 50, 'as many as of any other request')
    assert.deepEqual((await readdir(dir)).sort(), ['keep.txt', 'out', 'world'])
    const { data } = (await service.call('GET', `/servers/${serverId}/activity`)).body
    assert.equal(data[0].event, 'server.created')
  })

  test('every move at fault is named by its end', async () => {
    const moves = [
      { from: '/keep.txt', to: '/kept.txt' },
      { from: '/../a', to: '/b/..' },
      { from: '/', to: '/x' },
      { from: '/world', to: '/world/inner' },
    ]
    assert.deepEqual(await refused('POST', '/move', { moves }), [
      '/moves/1/from',
      '/moves/1/to',
      '/moves/2/from',
      '/moves/3/to',
    ])
    const onDisk = [
      { from: '/keep.txt', to: '/bad\\name' },
      { from: '/out/passwd', to: '/passwd' },
      { from: '/world', to: '/out/world' },
    ]
    assert.deepEqual(await refused('POST', '/move', { moves: onDisk }), ['/moves/0/to', '/moves/1/from', '/moves/2/to'])
    assert.deepEqual((await readdir(dir)).sort(), ['keep.txt', 'out', 'world'])
  })

  test('a request with one path names its field', async () => {
    assert.deepEqual(await refused('POST', '/copy', { location: '/..' }), ['/location'])
    assert.deepEqual(await refused('POST', '/copy', { location: '/' }), ['/location'])
    assert.deepEqual(await refused('POST', '/folder', { name: 'a/b' }), ['/name'])
    assert.deepEqual(await refused('POST', '/folder', { name: 'x', path: '/..' }), ['/path'])
    assert.deepEqual(await refused('POST', '/folder', { name: '..', path: '/..' }), ['/path', '/name'])
    assert.deepEqual(await refused('POST', '/folder', { name: 'x', path: '/out' }), ['/path'])
    for (const at of ['?path=/..', '/content?path=/..', '/download?path=/..', '/search?q=x&path=/..'])
      assert.deepEqual(await refused('GET', at), ['/path'], at)
    for (const at of ['?path=/out', '/content?path=/out/passwd', '/content?path=/'])
      assert.deepEqual(await refused('GET', at), ['/path'], at)
    for (const path of ['/..', '/bad\\name', '/world', '/out/x']) {
      const put = await send(service, 'PUT', `/v1/game/files/${serverId}/content?path=${encodeURIComponent(path)}`, {
        body: 'x',
      })
      assert.deepEqual(fieldsOf(put), ['/path'], path)
    }
  })

  test('an upload names its directory or the file of the form', async () => {
    const { url } = (await service.call('GET', `/files/${serverId}/upload`)).body
    const upload = async (query: string, ...names: string[]) => {
      const body = new FormData()
      for (const name of names) body.append('files', new Blob(['x']), name)
      const reply = await fetch(`${url}${query}`, { method: 'POST', body })
      return fieldsOf({ status: reply.status, body: await reply.json() })
    }
    for (const directory of ['/..', '/out', '/keep.txt', '/bad%5Cname'])
      assert.deepEqual(await upload(`?directory=${directory}`, 'a'), ['/directory'], directory)
    assert.deepEqual(await upload('', 'a', '../b'), ['/files/1'])
    assert.deepEqual(await upload('', 'a', 'world', 'b'), ['/files/1'])
    assert.deepEqual(await upload('', 'a', 'b', 'a'), ['/files/2'])
    assert.deepEqual(await upload('', 'a', 'bad\\dir/b'), ['/files/1'])
    const begin = async (metadata: Record<string, string>) => {
      const pairs = Object.entries(metadata).map(([key, value]) => `${key} ${btoa(value)}`)
      const headers = { 'tus-resumable': '1.0.0', 'upload-length': '1', 'upload-metadata': pairs.join() }
      const reply = await fetch(url, { method: 'POST', headers })
      return fieldsOf({ status: reply.status, body: await reply.json() })
    }
    assert.deepEqual(await begin({ filename: 'a', directory: '/..' }), ['/directory'])
    assert.deepEqual(await begin({ filename: '../a' }), ['/filename'])
    assert.deepEqual(await begin({ filename: 'a', relativePath: '../a' }), ['/relativePath'])
    assert.deepEqual((await readdir(dir)).sort(), ['keep.txt', 'out', 'world'])
  })
})
