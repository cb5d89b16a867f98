import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type ErrorCode, isFailure } from '../../contract/errors.ts'
import { layout } from '../layout.ts'
import { openContent, streamContent, writeContent } from './content.ts'
import { createAgentFiles } from './index.ts'
import { fillTree, makeTree, mount, openDescriptors, withoutRoot } from './trees.testing.ts'

const code = (expected: ErrorCode) => (error: unknown) => isFailure(error, expected)
const serverId = 'srv_test'

async function start(
  t: TestContext,
  files: Record<string, string | Uint8Array> = {},
  options: { now?: () => number } = {},
) {
  const places = layout(makeTree(t, { [`servers/${serverId}/files/`]: '' }))
  const folders = places.server(serverId)
  fillTree(folders.files, files)
  const unexpected: unknown[] = []
  const agent = createAgentFiles({ layout: places, onUnexpected: (error) => unexpected.push(error), ...options })
  await agent.start()
  await agent.sweep()
  t.after(async () => {
    await agent.stop()
    assert.deepEqual(unexpected, [])
  })
  const at = (path: string) => join(folders.files, path)
  return { agent, folders, at, server: agent.server(serverId), tree: () => treeOf(folders.files) }
}

let requests = 0
const request = <T extends object>(fields: T) => ({ serverId, requestId: `req_${++requests}`, ...fields })

function treeOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()
}

async function* bytes(...chunks: string[]) {
  for (const chunk of chunks) yield Buffer.from(chunk)
}

test('a listing has directories first and says what each thing is', async (t) => {
  const { agent, at } = await start(t, { 'b.txt': 'hello', 'a/': '', 'c.bin': Uint8Array.of(0, 1), Z: '#!/bin/sh' })
  symlinkSync('b.txt', at('link'))
  execFileSync('mkfifo', [at('fifo')])
  chmodSync(at('b.txt'), 0o640)
  const { entries, next } = await agent.list({ serverId, path: '/' })
  assert.deepEqual(
    entries.map(({ name, kind }) => `${name} ${kind}`),
    ['a directory', 'Z file', 'b.txt file', 'c.bin file', 'fifo other', 'link symlink'],
  )
  assert.equal(next, null)
  const [, z, b, c, , link] = entries
  assert.deepEqual([z?.isText, b?.isText, c?.isText], [true, true, false])
  assert.deepEqual([b?.mode, b?.sizeBytes, b?.mime, b?.path], ['0640', 5, 'text/plain', '/b.txt'])
  assert.equal(link?.symlinkTarget, 'b.txt')
  assert.equal(b?.modifiedAt, new Date(Number(statSync(at('b.txt'), { bigint: true }).mtimeMs)).toISOString())
})

for (const sort of ['name', 'size', 'time'] as const)
  for (const descending of [false, true])
    test(`pages by ${sort}${descending ? ', descending,' : ''} give every entry once`, async (t) => {
      const files = Object.fromEntries(Array.from({ length: 57 }, (_, i) => [`f${(i * 37) % 57}`, 'x'.repeat(i % 5)]))
      const { agent } = await start(t, { ...files, 'd1/': '', 'd2/': '', é: '' })
      const names: string[] = []
      let after = null
      do {
        const page = await agent.list({ serverId, path: '/', sort, descending, limit: 7, after })
        names.push(...page.entries.map(({ name }) => name))
        after = page.next
      } while (after)
      assert.equal(names.length, 60)
      assert.equal(new Set(names).size, 60)
      assert.deepEqual(names.slice(0, 2).toSorted(), ['d1', 'd2'])
      const whole = await agent.list({ serverId, path: '/', sort, descending, limit: 1000 })
      assert.deepEqual(
        whole.entries.map(({ name }) => name),
        names,
      )
    })

test('stat follows directories that stay inside, and describes a link as itself', async (t) => {
  const { agent, at } = await start(t, { 'a/b.txt': 'x' })
  symlinkSync('a', at('link'))
  assert.equal((await agent.stat({ serverId, path: '/link/b.txt' })).path, '/a/b.txt')
  assert.equal((await agent.stat({ serverId, path: '/link' })).kind, 'symlink')
  assert.equal((await agent.stat({ serverId, path: '/' })).kind, 'directory')
  await assert.rejects(agent.stat({ serverId, path: '/none' }), code('not_found'))
  await assert.rejects(agent.stat({ serverId: 'srv_none', path: '/' }), code('not_found'))
  await assert.rejects(agent.stat({ serverId: '../srv_test', path: '/' }), code('not_found'))
})

test('a folder is made with its parents, once', async (t) => {
  const { agent, tree } = await start(t, { file: '' })
  const first = await agent.makeFolder({ serverId, path: '/a/b', name: 'c' })
  assert.deepEqual([first.created, first.entry.path, first.entry.kind], [true, '/a/b/c', 'directory'])
  assert.equal((await agent.makeFolder({ serverId, path: '/a/b', name: 'c' })).created, false)
  await assert.rejects(agent.makeFolder({ serverId, path: '/', name: 'file' }), code('already_exists'))
  await assert.rejects(agent.makeFolder({ serverId, path: '/file', name: 'x' }), code('already_exists'))
  for (const name of ['a/b', '..', '.', '', 'x.', 'a\nb', 'é'.repeat(128)])
    await assert.rejects(agent.makeFolder({ serverId, path: '/', name }), code('invalid_path'), name)
  await assert.rejects(agent.makeFolder({ serverId, path: '/new/bad\\one', name: 'x' }), code('invalid_path'))
  assert.deepEqual(tree(), ['a', 'a/b', 'a/b/c', 'file'])
})

test('deleting checks everything first', async (t) => {
  const { agent, at, tree } = await start(t, { 'a.txt': '', 'd/x': '' })
  symlinkSync('/etc', at('etc'))
  const before = tree()
  for (const bad of ['', '.', '..', '/', 'a\0', 'd/..', '../a', 'etc/passwd', '/a.txt', 'd//x'])
    await assert.rejects(agent.remove(request({ root: '/', files: ['a.txt', bad] })), code('invalid_path'), bad)
  await assert.rejects(agent.remove(request({ root: '/etc', files: ['passwd'] })), code('invalid_path'))
  assert.deepEqual(tree(), before)
})

test('deleting moves into the trash, names what was missing, and removes a link rather than its target', async (t) => {
  const { agent, at, tree } = await start(t, { 'a.txt': 'a', 'd/x/y': 'y', 'keep/z': 'z' })
  symlinkSync('keep', at('link'))
  const files = ['a.txt', 'd', 'd/x/y', 'none', 'none/deeper', 'a.txt/under', 'link', 'd/']
  const answer = await agent.remove(request({ root: '/', files }))
  assert.deepEqual(answer.deleted, ['a.txt', 'd', 'd/x/y', 'link', 'd/'])
  assert.deepEqual(answer.missing, ['none', 'none/deeper', 'a.txt/under'])
  assert.deepEqual(tree(), ['keep', 'keep/z'])
  const { items } = await agent.listTrash({ serverId })
  assert.deepEqual(
    items.map(({ path, kind }) => `${path} ${kind}`),
    ['/a.txt file', '/d directory', '/link symlink'],
  )
})

test('a repeated request gets its first answer', async (t) => {
  const { agent, tree } = await start(t, { 'a.txt': 'a' })
  const removal = request({ root: '/', files: ['a.txt'] })
  assert.deepEqual(await agent.remove(removal), { deleted: ['a.txt'], missing: [] })
  assert.deepEqual(await agent.remove(removal), { deleted: ['a.txt'], missing: [] })
  fillTree(agent.server(serverId).folders.files, { b: 'b' })
  const copying = request({ location: '/b' })
  assert.equal((await agent.copy(copying)).name, (await agent.copy(copying)).name)
  assert.deepEqual(tree(), ['b', 'b copy'])
})

test('an item comes back where it was, under a free name when its own is taken', async (t) => {
  const { agent, at } = await start(t, { 'd/a.txt': 'first', 'e/f/g': 'g' })
  await agent.remove(request({ root: '/d', files: ['a.txt'] }))
  await agent.remove(request({ root: '/', files: ['e'] }))
  fillTree(agent.server(serverId).folders.files, { 'd/a.txt': 'second' })
  const { items } = await agent.listTrash({ serverId })
  assert.deepEqual(
    items.map(({ path }) => path),
    ['/e', '/d/a.txt'],
  )
  const restored = await agent.restoreTrash(request({ trashId: items[1]?.id ?? '' }))
  assert.equal(restored.path, '/d/a restored.txt')
  assert.equal(readFileSync(at('d/a restored.txt'), 'utf8'), 'first')
  assert.equal(readFileSync(at('d/a.txt'), 'utf8'), 'second')
  await agent.restoreTrash(request({ trashId: items[0]?.id ?? '' }))
  assert.equal(readFileSync(at('e/f/g'), 'utf8'), 'g')
  await assert.rejects(agent.restoreTrash(request({ trashId: items[0]?.id ?? '' })), code('not_found'))
  await assert.rejects(agent.restoreTrash(request({ trashId: '../../x' })), code('not_found'))
  assert.deepEqual((await agent.listTrash({ serverId })).items, [])
})

test('the trash is listed in pages, newest first', async (t) => {
  const { agent } = await start(t, { a: '', b: '', c: '', d: '', e: '' })
  await agent.remove(request({ root: '/', files: ['a', 'b', 'c'] }))
  await agent.remove(request({ root: '/', files: ['d', 'e'] }))
  const paths: string[] = []
  let after: string | null = null
  do {
    const page: Awaited<ReturnType<typeof agent.listTrash>> = await agent.listTrash({ serverId, limit: 2, after })
    paths.push(...page.items.map(({ path }) => path))
    after = page.next
  } while (after)
  assert.deepEqual(paths, ['/d', '/e', '/a', '/b', '/c'])
})

test('old trash is emptied, and emptying that a crash cut short goes on', async (t) => {
  let now = Date.now()
  const { agent, server, folders } = await start(
    t,
    { old: 'x'.repeat(5000), 'tree/a/b': 'y', new: 'z' },
    { now: () => now },
  )
  await agent.remove(request({ root: '/', files: ['old', 'tree'] }))
  now += 25 * 3600_000
  await agent.remove(request({ root: '/', files: ['new'] }))
  mkdirSync(join(folders.trash, 'emptying-trs_left/0000'), { recursive: true })
  await server.trash.recover()
  await server.trash.expire()
  assert.deepEqual(
    (await agent.listTrash({ serverId })).items.map(({ path }) => path),
    ['/new'],
  )
  assert.equal(readdirSync(folders.trash).length, 1)
})

test('copies get names that people expect', async (t) => {
  const { agent, tree } = await start(t, { 'a.txt': 'A', 'w.tar.gz': '', '.env': '', 'dir.v1/x/y': 'y', plain: '' })
  const copied = async (location: string) => (await agent.copy(request({ location }))).path
  assert.equal(await copied('/a.txt'), '/a copy.txt')
  assert.equal(await copied('/a.txt'), '/a copy 2.txt')
  assert.equal(await copied('/a copy.txt'), '/a copy 3.txt')
  assert.equal(await copied('/w.tar.gz'), '/w copy.tar.gz')
  assert.equal(await copied('/.env'), '/.env copy')
  assert.equal(await copied('/dir.v1'), '/dir.v1 copy')
  assert.equal(await copied('/dir.v1'), '/dir.v1 copy 2')
  assert.equal(await copied('/plain'), '/plain copy')
  assert.ok(tree().includes('dir.v1 copy 2/x/y'))
  await assert.rejects(copied('/'), code('invalid_path'))
  await assert.rejects(copied('/none'), code('not_found'))
})

test('copies made at once get different names, also of names as long as names can be', async (t) => {
  const long = 'n'.repeat(255)
  const { agent, tree } = await start(t, { [long]: 'x', 'empty/': '' })
  const copies = Array.from({ length: 8 }, () => agent.copy(request({ location: `/${long}` })))
  const empties = Array.from({ length: 4 }, () => agent.copy(request({ location: '/empty' })))
  const names = (await Promise.all([...copies, ...empties])).map(({ name }) => name)
  assert.equal(new Set(names).size, 12)
  assert.ok(names.every((name) => Buffer.byteLength(name) <= 255))
  assert.equal(tree().length, 14)
})

test('a directory is copied whole: modes, links and odd names, without what cannot be copied', async (t) => {
  const { agent, at } = await start(t, { 'd/a/b.txt': 'b', 'd/%2e%2e': 'odd', 'd/empty/': '' })
  symlinkSync('../outside', at('d/link'))
  execFileSync('mkfifo', [at('d/fifo')])
  writeFileSync(Buffer.concat([Buffer.from(at('d/')), Buffer.of(0xff, 0x41)]), 'raw')
  chmodSync(at('d/a/b.txt'), 0o751)
  chmodSync(at('d/empty'), 0o500)
  await agent.copy(request({ location: '/d' }))
  assert.equal(readlinkSync(at('d copy/link')), '../outside')
  assert.equal(statSync(at('d copy/a/b.txt')).mode & 0o777, 0o751)
  assert.equal(statSync(at('d copy/empty')).mode & 0o777, 0o500)
  assert.ok(!existsSync(at('d copy/fifo')))
  assert.deepEqual(
    readdirSync(at('d copy')),
    readdirSync(at('d')).filter((name) => name !== 'fifo'),
  )
})

test('a cancelled copy leaves nothing', async (t) => {
  const files = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`d/${i}`, 'x']))
  const { agent, folders, tree } = await start(t, files)
  const before = tree()
  const descriptors = openDescriptors()
  const copying = request({ location: '/d' })
  const copy = agent.copy(copying)
  await agent.cancelCopy({ serverId, requestId: copying.requestId })
  await assert.rejects(copy, { name: 'AbortError' })
  assert.deepEqual(tree(), before)
  assert.deepEqual(readdirSync(folders.staging), [])
  assert.deepEqual(openDescriptors(), descriptors)
})

test('moves are checked first, refuse to overwrite, and put what they replace into the trash', async (t) => {
  const { agent, at, tree } = await start(t, { a: 'A', b: 'B', 'd/x': 'X', 'e/': '' })
  const before = tree()
  const rejected = (moves: { from: string; to: string }[], expected: ErrorCode) =>
    assert.rejects(agent.move(request({ moves })), code(expected))
  await rejected(
    [
      { from: '/a', to: '/new' },
      { from: '/none', to: '/y' },
    ],
    'not_found',
  )
  await rejected(
    [
      { from: '/a', to: '/new' },
      { from: '/b', to: '/d' },
    ],
    'already_exists',
  )
  await rejected([{ from: '/d', to: '/d/inner' }], 'invalid_path')
  await rejected([{ from: '/d/x', to: '/d' }], 'invalid_path')
  await rejected([{ from: '/', to: '/y' }], 'invalid_path')
  await rejected([{ from: '/a', to: '/bad\\name' }], 'invalid_path')
  await rejected(
    [
      { from: '/a', to: '/y' },
      { from: '/b', to: '/y' },
    ],
    'invalid_request',
  )
  assert.deepEqual(tree(), before)
  const { entries } = await agent.move(
    request({
      moves: [
        { from: '/a', to: '/p/q/a' },
        { from: '/d', to: '/e/d' },
      ],
    }),
  )
  assert.deepEqual(
    entries.map(({ path }) => path),
    ['/p/q/a', '/e/d'],
  )
  await agent.move(request({ moves: [{ from: '/p/q/a', to: '/b' }], overwrite: true }))
  assert.equal(readFileSync(at('b'), 'utf8'), 'A')
  const [item] = (await agent.listTrash({ serverId })).items
  assert.deepEqual([item?.path, item?.reason], ['/b', 'replaced'])
})

test('writing replaces in one step and keeps the version before', async (t) => {
  const { agent, server, at, folders } = await start(t, { 'a.txt': 'old' })
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
  const { server, at, folders } = await start(t, { 'd/x': 'x' })
  fillTree(folders.root, { 'outside.txt': 'safe' })
  symlinkSync('../outside.txt', at('out'))
  symlinkSync('d', at('inside'))
  execFileSync('mkfifo', [at('fifo')])
  for (const path of ['/out', '/inside/x', '/d', '/fifo', '/inside/new'])
    await assert.rejects(writeContent(server, path, bytes('bad')), code('invalid_path'), path)
  assert.equal(readFileSync(join(folders.root, 'outside.txt'), 'utf8'), 'safe')
})

test('of writers that hold the same tag, one wins', async (t) => {
  const { server } = await start(t, { 'a.txt': 'old' })
  const content = openContent(server, '/a.txt')
  content.file[Symbol.dispose]()
  const writes = Array.from({ length: 6 }, (_, i) =>
    writeContent(server, '/a.txt', bytes(`${i}`), { ifMatch: content.etag }),
  )
  const results = await Promise.allSettled(writes)
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
})

test('ranges are read and the file closed, also when the reader leaves early', async (t) => {
  const { server } = await start(t, { 'a.txt': '0123456789' })
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

test('search finds by name and content, and passes special files by', async (t) => {
  const { agent, at } = await start(t, {
    'Config.YML': 'x',
    'd/server.properties': 'motd=hi\nLevel-Name=World\n',
    'd/bin': Uint8Array.of(0, 76, 69, 86),
    'big.log': `${'filler\n'.repeat(50_000)}the needle\n`,
  })
  execFileSync('mkfifo', [at('level-name')])
  const byName = await agent.search({ serverId, query: 'config' })
  assert.deepEqual(
    byName.matches.map(({ path }) => path),
    ['/Config.YML'],
  )
  const byContent = await agent.search({ serverId, query: 'level-name', content: true })
  assert.deepEqual(byContent.matches.map(({ path, lineNumber }) => `${path} ${lineNumber}`).toSorted(), [
    '/d/server.properties 2',
    '/level-name null',
  ])
  const needle = await agent.search({ serverId, query: 'NEEDLE', content: true })
  assert.deepEqual(
    needle.matches.map(({ lineNumber }) => lineNumber),
    [50_001],
  )
  const limited = await agent.search({ serverId, query: 'filler', content: true, limit: 3 })
  assert.deepEqual([limited.matches.length, limited.isComplete], [3, false])
})

test('writers that run together cannot pass the quota together, and trash makes way for them', async (t) => {
  const { agent, server, folders } = await start(t, { old: Buffer.alloc(40_960) })
  await agent.setQuota({ serverId, quotaBytes: 102_400 })
  const body = async function* () {
    for (let i = 0; i < 4; i++) yield Buffer.alloc(4096)
  }
  const before = await agent.usage({ serverId })
  assert.deepEqual([before.usedBytes, before.quotaBytes], [40_960, 102_400])
  const results = await Promise.allSettled(Array.from({ length: 10 }, (_, i) => writeContent(server, `/f${i}`, body())))
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 3)
  for (const result of results) if (result.status === 'rejected') assert.ok(isFailure(result.reason, 'quota_exceeded'))
  assert.deepEqual(readdirSync(folders.staging), [])
  await agent.remove(request({ root: '/', files: ['old'] }))
  assert.equal((await agent.usage({ serverId })).trashBytes, 40_960)
  await writeContent(server, '/g', body())
  const after = await agent.usage({ serverId })
  assert.deepEqual([after.usedBytes, after.trashBytes, after.reservedBytes], [65_536, 0, 0])
  await server.usage.rescan()
  assert.equal((await agent.usage({ serverId })).usedBytes, 65_536)
})

test('a full disk is disk_full, with the old file intact and nothing left over', { skip: withoutRoot() }, async (t) => {
  const base = makeTree(t, { 'data/': '' })
  using _tmpfs = mount(join(base, 'data'), '-t', 'tmpfs', '-o', 'size=20m', 'tmpfs')
  const places = layout(join(base, 'data'))
  fillTree(places.server(serverId).files, { 'a.bin': Buffer.alloc(6 * 1024 * 1024, 1), 'd/b.bin': Buffer.alloc(4096) })
  const agent = createAgentFiles({ layout: places, onUnexpected: assert.ifError })
  await agent.start()
  const endless = async function* () {
    for (;;) yield Buffer.alloc(65_536, 2)
  }
  const server = agent.server(serverId)
  await assert.rejects(writeContent(server, '/a.bin', endless()), code('disk_full'))
  await assert.rejects(writeContent(server, '/new', endless(), { expectedBytes: 1e9 }), code('disk_full'))
  await assert.rejects(agent.copy(request({ location: '/a.bin' })), code('disk_full'))
  assert.deepEqual(readFileSync(join(server.folders.files, 'a.bin')), Buffer.alloc(6 * 1024 * 1024, 1))
  assert.deepEqual(readdirSync(server.folders.staging), [])
  assert.deepEqual(treeOf(server.folders.files), ['a.bin', 'd', 'd/b.bin'])
  assert.equal((await agent.usage({ serverId })).reservedBytes, 0)
  await agent.stop()
})

test('while the tree is being swapped everything else is told so', async (t) => {
  const { agent, server } = await start(t, { a: 'a' })
  const writing = server.lock.share()
  const swapping = server.lock.exclude()
  await assert.rejects(agent.copy(request({ location: '/a' })), code('server_busy'))
  await assert.rejects(server.lock.exclude(), code('server_busy'))
  writing[Symbol.dispose]()
  const swap = await swapping
  await assert.rejects(agent.remove(request({ root: '/', files: ['a'] })), code('server_busy'))
  await assert.rejects(writeContent(server, '/b', bytes('x')), code('server_busy'))
  swap[Symbol.dispose]()
  assert.equal((await agent.copy(request({ location: '/a' }))).name, 'a copy')
})

test('what a crash left in staging is gone after a start; what has an owner stays', async (t) => {
  const { agent, folders } = await start(t)
  fillTree(folders.staging, { 'tmp-upl_x/deep/y': '', 'tmp-z': '', upl_kept: '' })
  await agent.start()
  assert.deepEqual(readdirSync(folders.staging), ['upl_kept'])
})
