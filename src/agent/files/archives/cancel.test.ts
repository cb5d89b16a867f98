// Cancelling reaches every loop: each kind of work is cancelled in the middle of what could go on for long, reads no
// further than what it has under way, and leaves nothing.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { createTurns } from '../../../kit/waiting/turns.ts'
import { PULL_OPTIONS, pull } from '../pull/pull.ts'
import { openDescriptors, untilDescriptors } from '../trees.testing.ts'
import { archiveOf, entry, serverId, start } from './archives.testing.ts'
import { readArchive } from './formats.ts'
import { pack } from './pack.ts'
import { tarHeader, tarMember } from './spoiled.testing.ts'
import { UNPACK_LIMITS, unpack } from './unpack.ts'

const FORMATS = ['zip', 'tar', 'tar.gz', 'tar.zst'] as const
const MIB = 1024 * 1024

for (const format of FORMATS)
  test(`${format}: a reader that is cancelled in the middle of a file reads no further`, async (t) => {
    const { server, at } = await start(t)
    writeFileSync(at('a'), await archiveOf(format, [entry('f', { text: randomBytes(8 * MIB) })]))
    const before = openDescriptors()
    {
      using file = server.files.openFile('/a')
      const abort = new AbortController()
      let inflatedBytes = 0
      const onInflated = (bytes: number) => {
        inflatedBytes += bytes
      }
      let readBytes = 0
      const reading = async () => {
        const turn = createTurns('a reader', abort.signal)
        for await (const { content } of readArchive(format, file, { signal: abort.signal, turn, onInflated }))
          for await (const chunk of content()) {
            readBytes += chunk.length
            abort.abort()
          }
      }
      await assert.rejects(reading(), { name: 'AbortError' })
      assert.ok(readBytes <= MIB, `${readBytes}`)
      assert.ok(inflatedBytes <= 2 * MIB, `${inflatedBytes}`)
    }
    await untilDescriptors(before)
  })

for (const format of FORMATS)
  test(`${format}: unpacking that is cancelled in the middle of a file ends and leaves nothing`, async (t) => {
    const { agent, server, at, tree, staged, context, abort } = await start(t)
    const entries = [entry('first'), entry('second', { text: randomBytes(16 * MIB) }), entry('third')]
    writeFileSync(at('a'), await archiveOf(format, entries))
    const done: number[] = []
    const report = ({ filesDone = 0 }: { filesDone?: number }) => {
      done.push(filesDone)
      // While the second is being read.
      setImmediate(() => abort.abort())
    }
    const work = unpack(server, { kind: 'files.unpack', path: '/a', directory: '/out' }, { ...context, report })
    await assert.rejects(work, { name: 'AbortError' })
    assert.deepEqual(done, [1])
    assert.deepEqual(tree(), ['a'])
    assert.deepEqual(staged(), [])
    assert.equal((await agent.usage({ serverId })).reservedBytes, 0)
  })

/** Headers without an entry, or one after the other, for as long as there are bytes. */
const STRETCHES: Record<string, () => Buffer> = {
  'content that is passed over': () =>
    Buffer.concat([tarHeader({ name: 'd', type: '5', size: 64 * MIB }), Buffer.alloc(64 * MIB)]),
  'directories without end': () =>
    Buffer.concat(Array.from({ length: 20_000 }, () => tarMember({ name: 'd', type: '5' }))),
}
for (const [what, make] of Object.entries(STRETCHES))
  for (const [format, squeeze] of Object.entries({ 'tar.gz': gzipSync, 'tar.zst': zstdCompressSync }))
    test(`${format}: unpacking that is cancelled in ${what} ends and leaves nothing`, async (t) => {
      const { server, at, tree, staged, context, abort } = await start(t)
      const lead = tarMember({ name: 'first', type: '5' })
      writeFileSync(at('a'), squeeze(Buffer.concat([lead, make()])))
      const report = () => abort.abort()
      const limits = { ...UNPACK_LIMITS, harmlessBytes: 1024 * MIB }
      const work = unpack(
        server,
        { kind: 'files.unpack', path: '/a', directory: '/out' },
        { ...context, report },
        limits,
      )
      await assert.rejects(work, { name: 'AbortError' })
      assert.deepEqual(tree(), ['a'])
      assert.deepEqual(staged(), [])
    })

for (const format of FORMATS)
  test(`${format}: packing that is cancelled in the middle of a file ends and leaves nothing`, async (t) => {
    const { agent, server, at, tree, staged, context, abort } = await start(t, { 'w/a': 'small', 'w/b': '' })
    // Holes cost nothing to make and would take long to pack.
    truncateSync(at('w/b'), 64 * 1024 * MIB)
    const before = openDescriptors()
    const report = ({ filesDone = 0 }: { filesDone?: number }) => {
      if (filesDone > 0) setImmediate(() => abort.abort())
    }
    const work = pack(server, { kind: 'files.pack', root: '/', files: ['w'], format }, { ...context, report })
    await assert.rejects(work, { name: 'AbortError' })
    assert.deepEqual(tree(), ['w', 'w/a', 'w/b'])
    assert.deepEqual(staged(), [])
    assert.equal((await agent.usage({ serverId })).reservedBytes, 0)
    await untilDescriptors(before)
  })

test('a pull that is cancelled in the middle of the body ends and leaves nothing', async (t) => {
  const { agent, server, tree, staged, context, abort } = await start(t)
  const endless = createServer((_, response) => {
    const send = () => response.write(Buffer.alloc(64 * 1024)) && !response.destroyed && setImmediate(send)
    response.on('drain', send)
    response.on('error', () => {})
    send()
  })
  endless.listen(0, '127.0.0.1')
  await once(endless, 'listening')
  t.after(() => endless.close())
  const url = `http://127.0.0.1:${(endless.address() as AddressInfo).port}/file`
  const report = ({ bytesDone = 0 }: { bytesDone?: number }) => {
    if (bytesDone > 0) abort.abort()
  }
  const options = { ...PULL_OPTIONS, isAllowed: () => true }
  const work = pull(server, { kind: 'files.pull', url, directory: '/' }, { ...context, report }, options)
  await assert.rejects(work, { name: 'AbortError' })
  assert.deepEqual(tree(), [])
  assert.deepEqual(staged(), [])
  assert.equal((await agent.usage({ serverId })).reservedBytes, 0)
})
