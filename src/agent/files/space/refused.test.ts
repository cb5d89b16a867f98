// "one that is refused or aborted frees nothing": also where it is refused at its very end.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { newId } from '../../../kit/ids.ts'
import { unpack } from '../archives/unpack.ts'
import { BY_THE_SYSTEM } from '../changes/changes.ts'
import { openContent, writeContent } from '../content.ts'
import { code, request, serverId, startServer } from '../server.testing.ts'
import { writeBatch } from '../uploads/batch.ts'
import { createPartialUploads } from '../uploads/partial-uploads.ts'

const BLOCK = 4096
const { signal } = new AbortController()
const change = { kind: 'file.written', requestId: null, origin: BY_THE_SYSTEM }

/** Twenty blocks and their record are in the trash, and `spareBlocks` are free. */
async function fullServer(t: TestContext, files: Record<string, string | Buffer>, spareBlocks = 2) {
  const started = await startServer(t, { old: Buffer.alloc(20 * BLOCK), ...files })
  const { agent } = started
  await agent.remove(request({ root: '/', files: ['old'] }))
  const { usedBytes } = await agent.usage({ serverId })
  await agent.setQuota({ serverId, quotaBytes: usedBytes + spareBlocks * BLOCK, maxEntries: null })
  const keeps = async (paths = ['/old']) => {
    assert.deepEqual(
      (await agent.listTrash({ serverId })).items.map(({ path }) => path),
      paths,
    )
    assert.equal((await agent.usage({ serverId })).reservedBytes, 0)
  }
  return { ...started, keeps }
}

/** Somebody does something to the server's files when half of it has come. */
async function* body(blocks: number, halfWay: () => void = () => {}) {
  yield Buffer.alloc((blocks * BLOCK) / 2, 'n')
  halfWay()
  yield Buffer.alloc((blocks * BLOCK) / 2, 'n')
}

test('a file that is changed while another version of it is written with If-Match', async (t) => {
  const { server, at, keeps } = await fullServer(t, { a: 'a' })
  const { file, etag } = openContent(server, '/a')
  file[Symbol.dispose]()
  const writing = writeContent(
    server,
    '/a',
    body(10, () => writeFileSync(at('a'), 'game')),
    { ifMatch: etag, change },
  )
  await assert.rejects(writing, code('precondition_failed'))
  await keeps()
})

test('two writers with one tag: the second is refused, and only the room of the first is made', async (t) => {
  const { agent, server, keeps } = await fullServer(t, { a: 'a', more: Buffer.alloc(20 * BLOCK) })
  await agent.remove(request({ root: '/', files: ['more'] }))
  const { usedBytes } = await agent.usage({ serverId })
  await agent.setQuota({ serverId, quotaBytes: usedBytes, maxEntries: null })
  const { file, etag } = openContent(server, '/a')
  file[Symbol.dispose]()
  const write = () => writeContent(server, '/a', body(12), { ifMatch: etag, change })
  const results = await Promise.allSettled([write(), write()])
  assert.deepEqual(results.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
  await keeps(['/a', '/more'])
})

for (const isJournaled of [true, false])
  test(`a file that appears while it is written for the first time, ${isJournaled ? 'by a request' : 'by a job'}`, async (t) => {
    const { server, at, keeps } = await fullServer(t, {})
    const appears = () => writeFileSync(at('new'), 'game')
    const options = { overwrite: false, ...(isJournaled ? { change } : {}) }
    await assert.rejects(writeContent(server, '/new', body(10, appears), options), code('already_exists'))
    await keeps()
  })

test('a directory that becomes a file while something is written into it', async (t) => {
  const { server, at, keeps } = await fullServer(t, {})
  const writing = writeContent(
    server,
    '/d/new',
    body(10, () => writeFileSync(at('d'), 'game')),
    { change },
  )
  await assert.rejects(writing, code('invalid_path'))
  await keeps()
})

test('a file that would fit, below directories that would not', async (t) => {
  // With the trash gone there are 24 blocks.
  const { server, keeps, tree } = await fullServer(t, {})
  const options = { change }
  await assert.rejects(writeContent(server, '/p/q/r/new', body(22), options), code('quota_exceeded'))
  await keeps()
  await writeContent(server, '/p/q/new', body(22), options)
  assert.deepEqual(tree(), ['p', 'p/q', 'p/q/new'])
  await keeps([])
})

test('a form of which one file has come into being meanwhile', async (t) => {
  const { server, at, keeps, tree } = await fullServer(t, {})
  const sources = async function* () {
    yield { name: 'one', bytes: body(10) }
    yield { name: 'd/two', bytes: body(2, () => writeFileSync(at('one'), 'game')) }
  }
  const form = { directory: '/', overwrite: false, maxBytes: 1e9, expectedBytes: 0, signal, change }
  await assert.rejects(writeBatch(server, sources(), form), code('already_exists'))
  await keeps()
  assert.deepEqual(tree(), ['one'])
})

test('an upload in pieces whose file has come into being meanwhile', async (t) => {
  const { server, at, keeps } = await fullServer(t, {})
  const uploads = createPartialUploads(server, async () => {})
  const id = newId('upl')
  const cause = { tokenId: 'tok_1', requestId: 'req_1', ip: '127.0.0.1', userAgent: '' }
  const to = { directory: '/', path: '/new', overwrite: false, sizeBytes: 10 * BLOCK, metadata: {}, isFinished: false }
  await uploads.create({ version: 1, id, uploadId: newId('upl'), cause, ...to }, 1e9)
  await uploads.append(id, body(10), { signal })
  writeFileSync(at('new'), 'game')
  await assert.rejects(uploads.finish(id), code('already_exists'))
  await keeps()
})

test('an archive of which a file is there already, or whose directory is a file', async (t) => {
  const { agent, server, folders, at, keeps } = await fullServer(t, { 'mod.jar': Buffer.alloc(10 * BLOCK, 'm') }, 2)
  execFileSync('tar', ['-czf', at('pack.tar.gz'), '-C', folders.files, 'mod.jar'])
  writeFileSync(at('mod.jar'), 'mine')
  await server.usage.rescan()
  const { usedBytes } = await agent.usage({ serverId })
  await agent.setQuota({ serverId, quotaBytes: usedBytes + 2 * BLOCK, maxEntries: null })
  const context = { taskId: 'job_1', serverId, signal, report: () => {} }
  const archive = { kind: 'files.unpack', path: '/pack.tar.gz' } as const
  await assert.rejects(unpack(server, { ...archive, directory: '/' }, context), code('already_exists'))
  await assert.rejects(unpack(server, { ...archive, directory: '/mod.jar/in' }, context))
  await keeps()
  assert.equal(readFileSync(at('mod.jar'), 'utf8'), 'mine')
  // Fits with the trash gone, but for the record of what it replaces.
  await agent.setQuota({ serverId, quotaBytes: usedBytes - 12 * BLOCK, maxEntries: null })
  const replacing = { ...archive, directory: '/', overwrite: true }
  await assert.rejects(unpack(server, replacing, context), code('quota_exceeded'))
  await keeps()
  await agent.setQuota({ serverId, quotaBytes: usedBytes - 10 * BLOCK, maxEntries: null })
  await unpack(server, replacing, context)
  assert.deepEqual(readFileSync(at('mod.jar')), Buffer.alloc(10 * BLOCK, 'm'))
  await keeps(['/mod.jar'])
})

test('a directory below a file, and a move to below a file', async (t) => {
  const { agent, keeps } = await fullServer(t, { a: 'a', b: 'b' }, 0)
  await assert.rejects(agent.makeFolder(request({ path: '/a/b/c', name: 'd' })))
  await assert.rejects(agent.move(request({ moves: [{ from: '/b', to: '/a/b/c' }] })))
  await keeps()
})

test('a move that fits but for the record of what it replaces', async (t) => {
  const { agent, at, keeps } = await fullServer(t, { a: 'a', b: 'b', c: 'c' })
  mkdirSync(at('d'))
  const { usedBytes } = await agent.usage({ serverId })
  // With the trash gone there are two blocks.
  await agent.setQuota({ serverId, quotaBytes: usedBytes - 20 * BLOCK, maxEntries: null })
  const moves = [
    { from: '/a', to: '/new/a' },
    { from: '/b', to: '/c' },
  ]
  await assert.rejects(agent.move(request({ moves, overwrite: true })), code('quota_exceeded'))
  await keeps()
})
