// What the trash has to give when somebody needs room, as somebody sees it who uploads over HTTP: who announces a size
// gets no more than an answer, and nothing leaves the trash unrecorded.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { mount, withoutRoot } from '../src/agent/files/trees.testing.ts'
import type { Engine } from '../src/control/db/database.ts'
import { onBothEngines } from './support/engines.ts'
import { sendRaw } from './support/raw.ts'
import { startTestService, type TestService } from './support/service.ts'
import { until } from './support/until.ts'

const MIB = 1024 * 1024
const GIB = 1024 * MIB
const RECORD_BYTES = 8192

/** A service whose servers share a disk of 64 MiB, of which 8 are never given away. */
async function onSmallDisk(t: TestContext, engine: Engine, work: (service: TestService) => Promise<void>) {
  const dataDir = mkdtempSync(join(tmpdir(), 'gamekeeper-room-'))
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  mkdirSync(join(dataDir, 'servers'))
  using _mounted = mount(join(dataDir, 'servers'), '-t', 'tmpfs', '-o', 'size=64m', 'none')
  const service = await startTestService({ engine, env: { GAMEKEEPER_DATA_DIR: dataDir } })
  try {
    await work(service)
  } finally {
    await service.halt()
  }
}

function filesOf(service: TestService, serverId: string) {
  const content = (path: string) => `/files/${serverId}/content?path=${encodeURIComponent(path)}`
  const write = (path: string, sizeBytes: number) =>
    service.call('PUT', content(path), { body: Buffer.alloc(sizeBytes, 1) })
  return {
    write,
    /** Written, then deleted. */
    async trash(path: string, sizeBytes: number) {
      assert.equal((await write(path, sizeBytes)).status, 201)
      const reply = await service.call('DELETE', `/files/${serverId}`, { body: { files: [path.slice(1)] } })
      assert.deepEqual(reply.body.deleted, [path.slice(1)])
    },
    async trashed(): Promise<string[]> {
      const { body } = await service.call('GET', `/files/${serverId}/trash`)
      return body.data.map(({ path }: { path: string }) => path).reverse()
    },
    async freed(): Promise<Record<string, unknown>[]> {
      const { body } = await service.call('GET', `/servers/${serverId}/activity?event=file.trash_freed`)
      return body.data.map(({ properties }: { properties: object }) => properties).reverse()
    },
    usage: async () => (await service.call('GET', `/files/${serverId}/usage`)).body,
    async uploadUrl(): Promise<string> {
      return (await service.call('GET', `/files/${serverId}/upload`)).body.url
    },
    /** Announces a body and sends nothing of it. */
    async announce(how: 'put' | 'form' | 'tus', sizeBytes: number) {
      const head = (method: string, path: string, ...more: string[]) =>
        sendRaw(service.url, `${[`${method} ${path} HTTP/1.1`, 'host: x', ...more].join('\r\n')}\r\n\r\n`)
      if (how === 'put')
        return await head(
          'PUT',
          `/v1/game${content('/announced')}`,
          `authorization: Bearer ${service.adminToken}`,
          `content-length: ${sizeBytes}`,
        )
      const { pathname } = new URL(await this.uploadUrl())
      if (how === 'form')
        return await head(
          'POST',
          pathname,
          'content-type: multipart/form-data; boundary=x',
          `content-length: ${sizeBytes}`,
        )
      const metadata = `upload-metadata: filename ${Buffer.from('announced').toString('base64')}`
      return await head('POST', pathname, 'tus-resumable: 1.0.0', `upload-length: ${sizeBytes}`, metadata)
    },
    /** Sends a part of what it has announced, waits until it is on the disk, and leaves. */
    async breakOff(path: string, announcedBytes: number, sentBytes: number) {
      const headers = { authorization: `Bearer ${service.adminToken}`, 'content-length': announcedBytes }
      const request = httpRequest(`${service.url}/v1/game${content(path)}`, { method: 'PUT', headers })
      const { promise: left, resolve } = Promise.withResolvers<void>()
      request.on('error', () => {}).on('close', resolve)
      request.write(Buffer.alloc(sentBytes, 2))
      // The last of it is gathered in memory for the next write.
      await until(async () => stagedBytes(service, serverId) >= sentBytes - 256 * 1024)
      request.destroy()
      await left
      await until(async () => (await this.usage()).reservedBytes === 0)
    },
  }
}

function stagedBytes(service: TestService, serverId: string): number {
  const staging = join(service.dataDir, 'servers', serverId, 'staging')
  return readdirSync(staging).reduce((sum, name) => sum + statSync(join(staging, name)).size, 0)
}

onBothEngines('room at the cost of the trash', (engine) => {
  test("A size that is only announced (Content-Length, Upload-Length, the length a pull's source reports) frees nothing.", {
    skip: withoutRoot(),
  }, async (t) => {
    await onSmallDisk(t, engine, async (service) => {
      const [one, two] = [await service.createServer(), await service.createServer()]
      const [own, other] = [filesOf(service, one.id), filesOf(service, two.id)]
      await own.trash('/own', 4 * MIB)
      await other.trash('/other', 4 * MIB)
      for (const [how, sizeBytes, status, code] of [
        ['put', 100 * GIB, 507, 'disk_full'],
        ['put', 100 * GIB + 1, 413, 'too_large'],
        ['form', 9e15, 413, 'too_large'],
        ['form', 100 * GIB, 507, 'disk_full'],
        ['tus', 100 * GIB, 507, 'disk_full'],
        ['tus', 9e15, 413, 'too_large'],
        // It fits once the trash is gone: taken, and still nothing is freed before its bytes are here.
        ['tus', 52 * MIB, 201, undefined],
      ] as const) {
        const reply = await own.announce(how, sizeBytes)
        assert.deepEqual([reply.status, reply.body?.code], [status, code], `${how} ${sizeBytes}`)
        assert.deepEqual([await own.trashed(), await other.trashed()], [['/own'], ['/other']], `${how} ${sizeBytes}`)
      }
      assert.deepEqual([await own.freed(), await other.freed()], [[], []])
    })
  })

  test('one that is refused or aborted frees nothing', async () => {
    await using service = await startTestService({ engine })
    const { id } = await service.createServer({ limits: { diskBytes: MIB } })
    const own = filesOf(service, id)
    await own.trash('/old', MIB / 2)
    assert.equal((await own.write('/kept', MIB / 4)).status, 201)
    // A form may have 1 MiB around its files. A link to upload by takes no more than the quota, whatever is in it.
    for (const [how, sizeBytes] of [
      ['put', 2 * MIB],
      ['form', 3 * MIB],
      ['tus', 0.9 * MIB],
    ] as const) {
      const reply = await own.announce(how, Math.round(sizeBytes))
      assert.deepEqual([reply.status, reply.body.code], [409, 'quota_exceeded'], how)
    }
    const chunked = `PUT /v1/game/files/${id}/content?path=/c HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${service.adminToken}\r\ntransfer-encoding: chunked\r\n\r\n`
    const chunk = `${(2 * MIB).toString(16)}\r\n${'x'.repeat(2 * MIB)}\r\n0\r\n\r\n`
    assert.equal((await sendRaw(service.url, chunked, chunk)).body.code, 'quota_exceeded')
    assert.deepEqual(await own.trashed(), ['/old'])
    assert.deepEqual(await own.freed(), [])
    assert.equal((await own.usage()).reservedBytes, 0)
  })

  test('an unpack that is refused, since a file of the archive is there already, frees nothing', async () => {
    await using service = await startTestService({ engine })
    const { id } = await service.createServer()
    const own = filesOf(service, id)
    assert.equal((await own.write('/mod.jar', 150_000)).status, 201)
    const root = join(service.dataDir, 'servers', id, 'files')
    const archive = execFileSync('tar', ['-czf', '-', '-C', root, 'mod.jar'])
    await service.call('PUT', `/files/${id}/content?path=/pack.tar.gz`, { body: archive })
    await own.trash('/world.dat', 200_000)
    const { usedBytes } = await own.usage()
    await service.call('PATCH', `/servers/${id}`, { body: { limits: { diskBytes: usedBytes + 40_000 } } })
    const { body: begun } = await service.call('POST', `/files/${id}/unpack`, { body: { path: '/pack.tar.gz' } })
    const job = await until(async () => {
      const { body } = await service.call('GET', `/servers/${id}/jobs/${begun.id}`)
      return body.status !== 'queued' && body.status !== 'running' && body
    })
    assert.deepEqual([job.status, job.error?.code], ['failed', 'already_exists'])
    assert.deepEqual([await own.trashed(), await own.freed()], [['/world.dat'], []])
  })

  test('on a server that is over its quota by the record of a deletion, undo brings back what was deleted', async () => {
    await using service = await startTestService({ engine })
    const { id } = await service.createServer({ limits: { diskBytes: MIB } })
    const own = filesOf(service, id)
    assert.equal((await own.write('/world.dat', 500_000)).status, 201)
    assert.equal((await own.write('/mods.jar', 540_000)).status, 201)
    await service.call('DELETE', `/files/${id}`, { body: { files: ['world.dat'] } })
    const { usedBytes, quotaBytes } = await own.usage()
    assert.ok(usedBytes > quotaBytes, `${usedBytes}`)
    const { body: trash } = await service.call('GET', `/files/${id}/trash`)
    const undone = await service.call('POST', `/files/${id}/trash/${trash.data[0].id}/restore`)
    assert.deepEqual([undone.status, undone.body.path], [200, '/world.dat'], JSON.stringify(undone.body))
    const restored = readFileSync(join(service.dataDir, 'servers', id, 'files/world.dat'))
    assert.deepEqual(restored, Buffer.alloc(500_000, 1))
    assert.deepEqual(await own.freed(), [])
  })

  for (const isEmpty of [false, true])
    test(`over its quota, with ${isEmpty ? 'nothing' : 'something'} in the trash, what needs no room works and frees nothing`, async () => {
      await using service = await startTestService({ engine })
      const { id } = await service.createServer()
      const own = filesOf(service, id)
      await service.call('POST', `/files/${id}/folder`, { body: { name: 'mods' } })
      assert.equal((await own.write('/keep.bin', 400_000)).status, 201)
      if (!isEmpty) await own.trash('/precious.dat', 200_000)
      const { usedBytes } = await own.usage()
      await service.call('PATCH', `/servers/${id}`, { body: { limits: { diskBytes: usedBytes - 4096 } } })
      const moves = [{ from: '/keep.bin', to: '/mods/kept.bin' }]
      const replies = [
        await service.call('POST', `/files/${id}/move`, { body: { moves } }),
        await service.call('POST', `/files/${id}/folder`, { body: { name: 'mods' } }),
      ]
      assert.deepEqual(
        replies.map(({ status }) => status),
        [200, 200],
        JSON.stringify(replies),
      )
      assert.deepEqual(await own.trashed(), isEmpty ? [] : ['/precious.dat'])
      assert.deepEqual(await own.freed(), [])
    })

  test('To meet its quota a server frees only its own trash', async () => {
    await using service = await startTestService({ engine })
    // A record of a deletion takes two blocks, and goes with what it tells of.
    const { id } = await service.createServer({ limits: { diskBytes: 4 * MIB + 2 * RECORD_BYTES } })
    const own = filesOf(service, id)
    const other = filesOf(service, (await service.createServer({ limits: { diskBytes: 4 * MIB } })).id)
    await other.trash('/older than all', MIB)
    for (const name of ['/first', '/second', '/third']) await own.trash(name, MIB)
    await own.breakOff('/broken off', 2 * MIB, MIB)
    assert.deepEqual(await own.trashed(), ['/first', '/second', '/third'], 'one that was broken off cost nothing')
    assert.equal((await own.write('/kept', 2 * MIB)).status, 201)
    assert.deepEqual([await own.trashed(), await other.trashed()], [['/second', '/third'], ['/older than all']])
    await until(async () => (await own.freed()).length > 0)
    const [{ freeingId, ...entry } = {}, ...more] = await own.freed()
    assert.deepEqual(entry, { reason: 'quota', requestedBy: id, freedBytes: MIB, items: 1, paths: ['/first'] })
    assert.match(String(freeingId), /^trs_/)
    assert.deepEqual([more, await other.freed()], [[], []])
    const { usedBytes, trashBytes } = await own.usage()
    assert.deepEqual([usedBytes, trashBytes], [4 * MIB + 2 * RECORD_BYTES, 2 * MIB + 2 * RECORD_BYTES])
  })

  test('two uploads at once on the last bytes: one is refused, and only the room of the other is made', async () => {
    await using service = await startTestService({ engine })
    const { id } = await service.createServer({ limits: { diskBytes: 4 * MIB } })
    const own = filesOf(service, id)
    for (const name of ['/first', '/second', '/third']) await own.trash(name, MIB)
    assert.equal((await own.write('/files', MIB)).status, 201)
    const replies = await Promise.all(['/a', '/b', '/c'].map((path) => own.write(path, 1.5 * MIB)))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [201, 201, 409])
    assert.deepEqual(await own.trashed(), [])
    const { usedBytes, reservedBytes } = await own.usage()
    assert.deepEqual([usedBytes, reservedBytes], [4 * MIB, 0])
  })

  test('When the disk runs short, trash is freed for bytes that have arrived: the oldest items of all servers on that disk.', {
    skip: withoutRoot(),
  }, async (t) => {
    await onSmallDisk(t, engine, async (service) => {
      const [one, two] = [await service.createServer(), await service.createServer()]
      const [own, other] = [filesOf(service, one.id), filesOf(service, two.id)]
      await own.trash('/1', 8 * MIB)
      await other.trash('/2', 8 * MIB)
      await own.trash('/3', 8 * MIB)
      await other.trash('/4', 8 * MIB)
      assert.equal((await own.write('/files', 20 * MIB)).status, 201)
      // 56 MiB are given away, 52 are in use.
      await own.breakOff('/broken off', 30 * MIB, 1 * MIB)
      assert.deepEqual(
        [await own.trashed(), await other.trashed()],
        [
          ['/1', '/3'],
          ['/2', '/4'],
        ],
      )
      await own.breakOff('/broken off', 30 * MIB, 7 * MIB)
      assert.deepEqual([await own.trashed(), await other.trashed()], [['/3'], ['/2', '/4']])
      assert.equal((await own.write('/more', 14 * MIB)).status, 201)
      assert.deepEqual([await own.trashed(), await other.trashed()], [['/3'], ['/4']])
      await until(async () => (await own.freed()).length === 1 && (await other.freed()).length === 1)
      const [{ freeingId: _own, ...mine } = {}] = await own.freed()
      assert.deepEqual(mine, { reason: 'disk', requestedBy: one.id, freedBytes: 8 * MIB, items: 1, paths: ['/1'] })
      const [{ freeingId: _other, ...theirs } = {}] = await other.freed()
      assert.deepEqual(theirs, { reason: 'disk', freedBytes: 8 * MIB, items: 1, paths: ['/2'] })
    })
  })
})
