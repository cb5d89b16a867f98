import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openContent, streamContent, writeContent } from './content.ts'
import { bytes, code, request, serverId, startServer } from './server.testing.ts'
import { fillTree, openDescriptors } from './trees.testing.ts'

test('Replaced and deleted files go to the trash first.', async (t) => {
  const { agent, server, at, folders } = await startServer(t, { 'a.txt': 'old' })
  chmodSync(at('a.txt'), 0o600)
  const content = openContent(server, '/a.txt')
  content.file[Symbol.dispose]()
  const written = await writeContent(server, '/a.txt', bytes('ne', 'w'), { ifMatch: content.etag })
  assert.equal(written.created, false)
  assert.equal(readFileSync(at('a.txt'), 'utf8'), 'new')
  assert.equal(statSync(at('a.txt')).mode & 0o777, 0o600)
  await assert.rejects(
    writeContent(server, '/a.txt', bytes('x'), { ifMatch: content.etag }),
    code('precondition_failed'),
  )
  await assert.rejects(writeContent(server, '/none', bytes('x'), { ifMatch: '*' }), code('precondition_failed'))
  await assert.rejects(writeContent(server, '/a.txt', bytes('x'), { overwrite: false }), code('already_exists'))
  await assert.rejects(writeContent(server, '/a.txt', bytes('xyz'), { maxBytes: 2 }), code('too_large'))
  await assert.rejects(writeContent(server, '/new/a\\b', bytes('x')), code('invalid_path'))
  assert.equal(readFileSync(at('a.txt'), 'utf8'), 'new')
  const [item] = (await agent.listTrash({ serverId })).items
  await agent.restoreTrash(request({ trashId: item?.id ?? '' }))
  assert.equal(readFileSync(at('a restored.txt'), 'utf8'), 'old')
  assert.deepEqual(readdirSync(folders.staging), [])
  assert.ok(!existsSync(at('new')))
})

test('writing never goes through a symlink or onto anything but a file', async (t) => {
  const { server, at, folders } = await startServer(t, { 'd/x': 'x' })
  fillTree(folders.root, { 'outside.txt': 'safe' })
  symlinkSync('../outside.txt', at('out'))
  symlinkSync('d', at('inside'))
  execFileSync('mkfifo', [at('fifo')])
  for (const path of ['/out', '/inside/x', '/d', '/fifo', '/inside/new'])
    await assert.rejects(writeContent(server, path, bytes('bad')), code('invalid_path'), path)
  assert.equal(readFileSync(join(folders.root, 'outside.txt'), 'utf8'), 'safe')
})

test('If-Match is compared before the first byte and again in the same instant as the rename', async (t) => {
  const { server } = await startServer(t, { 'a.txt': 'old' })
  const content = openContent(server, '/a.txt')
  content.file[Symbol.dispose]()
  const writes = Array.from({ length: 6 }, (_, i) =>
    writeContent(server, '/a.txt', bytes(`${i}`), { ifMatch: content.etag }),
  )
  const results = await Promise.allSettled(writes)
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
})

test('ranges are read and the file closed, also when the reader leaves early', async (t) => {
  const { server } = await startServer(t, { 'a.txt': '0123456789' })
  const descriptors = openDescriptors()
  const read = async (range?: { start: number; end: number }, leavesEarly = false) => {
    const stream = streamContent(openContent(server, '/a.txt').file, range)
    let text = ''
    stream.on('data', (chunk) => {
      text += chunk
      if (leavesEarly) stream.destroy()
    })
    await once(stream, 'close')
    return text
  }
  assert.equal(await read(), '0123456789')
  assert.equal(await read({ start: 2, end: 4 }), '234')
  await read(undefined, true)
  assert.deepEqual(openDescriptors(), descriptors)
})
