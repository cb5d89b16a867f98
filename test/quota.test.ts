// What counts against a server's limits: the space of directories as much as that of files, and how many entries there
// are, however they came into being.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { DEFAULT_ENTRIES_MAX } from '../src/contract/fixed-limits.ts'
import { onBothEngines } from './support/engines.ts'
import { startTestService, type TestService } from './support/service.ts'
import { until } from './support/until.ts'

const KIB = 1024
const BLOCK = 4096

function filesOf(service: TestService, id: string) {
  const call = (method: string, path: string, body?: unknown) =>
    service.call(method, path, body === undefined ? {} : { body })
  const root = join(service.dataDir, 'servers', id, 'files')
  return {
    call,
    root,
    folder: (path: string, name: string) => call('POST', `/files/${id}/folder`, { path, name }),
    write: (path: string, content = 'x') =>
      call('PUT', `/files/${id}/content?path=${encodeURIComponent(path)}`, content),
    copy: (location: string) => call('POST', `/files/${id}/copy`, { location }),
    remove: (...files: string[]) => call('DELETE', `/files/${id}`, { files }),
    usage: async () => (await call('GET', `/files/${id}/usage`)).body,
    names: () => readdirSync(root, { recursive: true, encoding: 'utf8' }).sort(),
    async upload(names: string[]) {
      const form = new FormData()
      for (const name of names) form.append('files', new Blob(['x']), name)
      const { url } = (await call('GET', `/files/${id}/upload`)).body
      const response = await fetch(url, { method: 'POST', body: form })
      return { status: response.status, body: JSON.parse(await response.text()) }
    },
    async job(path: string, body: unknown) {
      const { body: begun } = await call('POST', path, body)
      return await until(async () => {
        const { body: job } = await call('GET', `/servers/${id}/jobs/${begun.id}`)
        return job.status !== 'queued' && job.status !== 'running' && job
      })
    },
    async backup() {
      const { body } = await call('POST', `/backups/${id}`, {})
      await until(async () => (await call('GET', `/backups/${id}/${body.id}`)).body.status === 'completed')
      return body.id as string
    },
  }
}

const refused = ({ status, body }: { status: number; body: { code: string } }) =>
  assert.deepEqual([status, body.code], [409, 'quota_exceeded'], JSON.stringify(body))

onBothEngines('the limits of a server', (engine) => {
  test('directories count by the space they take, so a quota ends the making of them', async () => {
    await using service = await startTestService({ engine })
    const { id } = await service.createServer({ limits: { diskBytes: 128 * KIB } })
    const files = filesOf(service, id)
    let made = 0
    for (; made < 64; made++) {
      const { status } = await files.folder('/', `d${made}`)
      if (status !== 201) break
    }
    assert.ok(made > 0 && made <= 32, `${made} directories of ${BLOCK} bytes in 128 KiB`)
    refused(await files.folder('/', 'one-more'))
    refused(await files.folder('/a/b/c', 'd'))
    refused(await files.write('/new/file'))
    const { usedBytes, quotaBytes } = await files.usage()
    assert.ok(usedBytes <= quotaBytes && usedBytes >= made * BLOCK, `${usedBytes}`)
    assert.equal(files.names().length, made)
    await files.remove('d0', 'd1', 'd2', 'd3')
    assert.equal((await files.write('/new.txt')).status, 201, 'the trash makes way')
  })

  test('a server may have limits.entries of them', async () => {
    await using service = await startTestService({ engine })
    const { id } = await service.createServer({ limits: { entries: 10 } })
    const files = filesOf(service, id)
    assert.deepEqual((await service.call('GET', `/servers/${id}`)).body.limits.entries, 10)
    for (const name of ['a', 'b', 'c', 'd']) assert.equal((await files.write(`/tree/${name}`)).status, 201)
    const { usedEntries, maxEntries } = await files.usage()
    assert.deepEqual([usedEntries, maxEntries], [5, 10])

    assert.equal((await files.copy('/tree')).status, 201)
    refused(await files.copy('/tree'))
    refused(await files.write('/more'))
    refused(await files.folder('/', 'more'))
    refused(await files.upload(['one', 'two']))
    refused(await files.call('POST', `/files/${id}/move`, { moves: [{ from: '/tree/a', to: '/new/a' }] }))
    const tus = await fetch((await files.call('GET', `/files/${id}/upload`)).body.url, {
      method: 'POST',
      headers: {
        'tus-resumable': '1.0.0',
        'upload-length': '1',
        'upload-metadata': `filename ${Buffer.from('tus').toString('base64')}`,
      },
    })
    assert.equal(tus.status, 409)
    assert.equal(files.names().length, 10)

    await service.call('PATCH', `/servers/${id}`, { body: { limits: { entries: 12 } } })
    assert.equal((await files.upload(['one', 'two'])).status, 200)
    refused(await files.upload(['three']))
    await files.remove('tree copy')
    assert.equal((await files.upload(['three'])).status, 200, 'the trash makes way')
    await service.call('PATCH', `/servers/${id}`, { body: { limits: { entries: null } } })
    assert.equal((await files.folder('/p/q/r/s', 't')).status, 201)
  })

  test('unpacking and restoring keep to it too, and leave nothing where they are refused', async () => {
    await using service = await startTestService({ engine })
    const { id } = await service.createServer()
    const files = filesOf(service, id)
    assert.equal((await files.usage()).maxEntries, DEFAULT_ENTRIES_MAX)
    for (const name of ['d/a', 'd/b', 'd/e/c']) await files.write(`/${name}`)
    const backupId = await files.backup()
    const archive = execFileSync('tar', ['-cf', '-', '-C', files.root, 'd/e/c', 'd/a', 'd/b'])
    await service.call('PUT', `/files/${id}/content?path=/a.tar`, { body: archive })
    await files.remove('d')
    await files.call('DELETE', `/files/${id}/trash`)
    await service.call('PATCH', `/servers/${id}`, { body: { limits: { entries: 5 } } })
    const unpacked = await files.job(`/files/${id}/unpack`, { path: '/a.tar', directory: '/' })
    assert.deepEqual([unpacked.status, unpacked.error?.code], ['failed', 'quota_exceeded'])
    assert.deepEqual(files.names(), ['a.tar'])
    const merge = { mode: 'merge', safetyBackup: false }
    const restored = await files.job(`/backups/${id}/${backupId}/restore`, merge)
    assert.deepEqual([restored.status, restored.error?.code], ['failed', 'quota_exceeded'])
    assert.deepEqual(files.names(), ['a.tar'])
    await service.call('PATCH', `/servers/${id}`, { body: { limits: { entries: 6 } } })
    const again = await files.job(`/files/${id}/unpack`, { path: '/a.tar', directory: '/' })
    assert.equal(again.status, 'completed', JSON.stringify(again.error))
    const { usedEntries } = await files.usage()
    assert.equal(usedEntries, 6)
  })

  test('a restore leaves the entries that were promised to uploads under way', async () => {
    await using service = await startTestService({ engine })
    const { id } = await service.createServer({ limits: { entries: 6 } })
    const files = filesOf(service, id)
    for (const name of ['d/a', 'd/b', 'd/c']) await files.write(`/${name}`)
    const backupId = await files.backup()
    await files.remove('d')
    await files.call('DELETE', `/files/${id}/trash`)
    const { url } = (await files.call('GET', `/files/${id}/upload`)).body
    const begin = (name: string) => {
      const metadata = `filename ${Buffer.from(name).toString('base64')}`
      const headers = { 'tus-resumable': '1.0.0', 'upload-length': '4', 'upload-metadata': metadata }
      return fetch(url, { method: 'POST', headers })
    }
    for (const name of ['x', 'y', 'z']) assert.equal((await begin(name)).status, 201)
    const some = { paths: ['/d'], mode: 'merge', safetyBackup: false }
    const restored = await files.job(`/backups/${id}/${backupId}/restore`, some)
    assert.deepEqual([restored.status, restored.error?.code], ['failed', 'quota_exceeded'])
    assert.deepEqual(files.names(), [])
    await service.call('PATCH', `/servers/${id}`, { body: { limits: { entries: 7 } } })
    assert.equal((await files.job(`/backups/${id}/${backupId}/restore`, some)).status, 'completed')
  })

  test('requests that run together cannot pass it together', async () => {
    await using service = await startTestService({ engine })
    const { id } = await service.createServer({ limits: { entries: 30 } })
    const files = filesOf(service, id)
    const requests = Array.from({ length: 60 }, (_, index) =>
      index % 3 === 0
        ? files.folder(`/f${index}`, 'in')
        : index % 3 === 1
          ? files.write(`/w${index}/x`)
          : files.upload([`u${index}`]),
    )
    for (const { status } of await Promise.all(requests)) assert.ok([200, 201, 409].includes(status), `${status}`)
    const count = files.names().length
    assert.ok(count >= 28 && count <= 30, `${count} entries`)
    assert.equal((await files.usage()).usedEntries, count)
    assert.equal((await files.usage()).reservedEntries, 0)
    // Those that were refused while others had room to themselves have left all of theirs.
    for (let index = count; index < 30; index++) assert.equal((await files.folder('/', `g${index}`)).status, 201)
    refused(await files.folder('/', 'one more'))
    assert.equal(files.names().length, 30)
  })

  test('writing over an empty file again and again takes of the quota, record by record', async () => {
    await using service = await startTestService({ engine })
    const { id } = await service.createServer({ limits: { diskBytes: 64 * KIB } })
    const files = filesOf(service, id)
    for (let round = 0; round < 24; round++) await files.write('/empty', '')
    const trash = join(service.dataDir, 'servers', id, 'trash')
    assert.ok(readdirSync(trash).length <= 8, 'the oldest have made way')
    const { usedBytes, quotaBytes } = await files.usage()
    assert.ok(usedBytes <= quotaBytes, `${usedBytes}`)
  })
})
