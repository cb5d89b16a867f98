import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import fs, {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  truncateSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { test } from 'node:test'
import type { ErrorCode } from '../../contract/errors.ts'
import { code, request, serverId, startServer } from './server.testing.ts'
import { openDescriptors } from './trees.testing.ts'

test('a listing has directories first and says what each thing is', async (t) => {
  const { agent, at } = await startServer(t, {
    'b.txt': 'hello',
    'a/': '',
    'c.bin': Uint8Array.of(0, 1),
    Z: '#!/bin/sh',
  })
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

test('names that every object has fields of are names like others', async (t) => {
  const names = ['__proto__', 'a.constructor', 'b.valueOf', 'toString']
  const { agent } = await startServer(t, Object.fromEntries(names.map((name) => [name, 'hello'])))
  const { entries } = await agent.list({ serverId, path: '/' })
  assert.deepEqual(
    entries.map(({ name, mime, isText }) => ({ name, mime, isText })),
    names.map((name) => ({ name, mime: 'text/plain', isText: true })),
  )
})

for (const sort of ['name', 'size', 'time'] as const)
  for (const descending of [false, true])
    test(`pages by ${sort}${descending ? ', descending,' : ''} give every entry once`, async (t) => {
      const files = Object.fromEntries(Array.from({ length: 57 }, (_, i) => [`f${(i * 37) % 57}`, 'x'.repeat(i % 5)]))
      const { agent } = await startServer(t, { ...files, 'd1/': '', 'd2/': '', é: '' })
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
  const { agent, at } = await startServer(t, { 'a/b.txt': 'x' })
  symlinkSync('a', at('link'))
  assert.equal((await agent.stat({ serverId, path: '/link/b.txt' })).path, '/a/b.txt')
  assert.equal((await agent.stat({ serverId, path: '/link' })).kind, 'symlink')
  assert.equal((await agent.stat({ serverId, path: '/' })).kind, 'directory')
  await assert.rejects(agent.stat({ serverId, path: '/none' }), code('not_found'))
  await assert.rejects(agent.stat({ serverId: 'srv_none', path: '/' }), code('not_found'))
  await assert.rejects(agent.stat({ serverId: '../srv_test', path: '/' }), code('not_found'))
})

test('a folder is made with its parents, once', async (t) => {
  const { agent, tree } = await startServer(t, { file: '' })
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

test('copies get names that people expect', async (t) => {
  const { agent, tree } = await startServer(t, {
    'a.txt': 'A',
    'w.tar.gz': '',
    '.env': '',
    'dir.v1/x/y': 'y',
    plain: '',
  })
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
  const { agent, tree } = await startServer(t, { [long]: 'x', 'empty/': '' })
  const copies = Array.from({ length: 8 }, () => agent.copy(request({ location: `/${long}` })))
  const empties = Array.from({ length: 4 }, () => agent.copy(request({ location: '/empty' })))
  const names = (await Promise.all([...copies, ...empties])).map(({ name }) => name)
  assert.equal(new Set(names).size, 12)
  assert.ok(names.every((name) => Buffer.byteLength(name) <= 255))
  assert.equal(tree().length, 14)
})

test('a directory is copied whole: modes, links and odd names, without what cannot be copied', async (t) => {
  const { agent, at } = await startServer(t, { 'd/a/b.txt': 'b', 'd/%2e%2e': 'odd', 'd/empty/': '' })
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
  const { agent, folders, tree } = await startServer(t, files)
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
  const { agent, at, tree } = await startServer(t, { a: 'A', b: 'B', 'd/x': 'X', 'e/': '' })
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
  const { data } = await agent.move(
    request({
      moves: [
        { from: '/a', to: '/p/q/a' },
        { from: '/d', to: '/e/d' },
      ],
    }),
  )
  assert.deepEqual(
    data.map(({ path }) => path),
    ['/p/q/a', '/e/d'],
  )
  await agent.move(request({ moves: [{ from: '/p/q/a', to: '/b' }], overwrite: true }))
  assert.equal(readFileSync(at('b'), 'utf8'), 'A')
  const [item] = (await agent.listTrash({ serverId })).items
  assert.deepEqual([item?.path, item?.reason], ['/b', 'replaced'])
})

test('search finds by name and content, and passes special files by', async (t) => {
  const { agent, at } = await startServer(t, {
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

test('It is built in staging and appears only when complete.', async (t) => {
  const { agent, at, folders, tree } = await startServer(t)
  writeFileSync(at('big'), '')
  truncateSync(at('big'), 64 * 1024 ** 3)
  const copying = request({ location: '/big' })
  const copy = agent.copy(copying)
  const watcher = watch(folders.staging)
  await once(watcher, 'change')
  watcher.close()
  await agent.cancelCopy({ serverId, requestId: copying.requestId })
  await assert.rejects(copy, { name: 'AbortError' })
  assert.deepEqual(tree(), ['big'])
  assert.deepEqual(readdirSync(folders.staging), [])
})

test('a deletion in many directories holds few of them open', async (t) => {
  const files = Array.from({ length: 200 }, (_, index) => `d${index}/f`)
  const { agent, tree } = await startServer(t, Object.fromEntries(files.map((file) => [file, ''])))
  const { renameSync } = fs
  let most = 0
  t.after(() => {
    fs.renameSync = renameSync
    syncBuiltinESMExports()
  })
  fs.renameSync = (from, to) => {
    most = Math.max(most, openDescriptors().length)
    renameSync(from, to)
  }
  syncBuiltinESMExports()
  const before = openDescriptors().length
  const { deleted } = await agent.remove(request({ root: '/', files }))
  assert.deepEqual(deleted, files)
  assert.equal(tree().length, 200)
  assert.ok(most - before <= 50, `${most - before} descriptors`)
})
