import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { linkSync, mkdirSync, readdirSync, readFileSync, readSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { type ErrorCode, isFailure } from '../../../contract/errors.ts'
import { fillTree, makeTree, mount, openDescriptors, withoutRoot } from '../trees.testing.ts'
import { createFileAt, openFileAt, renameNewAt, unlinkAt } from './directory.ts'
import { removeTree } from './remove-tree.ts'
import { openSandbox } from './sandbox.ts'

const code = (expected: ErrorCode) => (error: unknown) => isFailure(error, expected)

function read(sandbox: ReturnType<typeof openSandbox>, path: string): string {
  using file = sandbox.openFile(path)
  const buffer = Buffer.alloc(100)
  return buffer.toString('utf8', 0, readSync(file.fd, buffer))
}

for (const descriptors of [true, false]) {
  const how = descriptors ? 'descriptors' : 'real paths'

  test(`${how}: symlinks that stay inside are followed for reading only`, (t) => {
    const base = makeTree(t, { 'files/a/b.txt': 'inside', 'outside/secret.txt': 'secret' })
    const files = join(base, 'files')
    symlinkSync('a', join(files, 'relative'))
    symlinkSync(join(files, 'a'), join(files, 'absolute'))
    symlinkSync('../a/b.txt', join(files, 'a/up-and-down'))
    symlinkSync('relative', join(files, 'chain'))
    const sandbox = openSandbox(files, { descriptors })
    for (const path of ['/a/b.txt', '/relative/b.txt', '/absolute/b.txt', '/a/up-and-down', '/chain/up-and-down'])
      assert.equal(read(sandbox, path), 'inside')
    assert.throws(() => sandbox.openPlace('/relative/b.txt'), code('invalid_path'))
    assert.throws(() => sandbox.openNewPlace('/chain/new.txt'), code('invalid_path'))
    assert.throws(() => sandbox.mkdirs('/relative/new'), code('invalid_path'))
  })

  test(`${how}: symlinks that leave or loop are refused`, (t) => {
    const base = makeTree(t, { 'files/a/b.txt': 'inside', 'outside/secret.txt': 'secret' })
    const files = join(base, 'files')
    symlinkSync('../outside', join(files, 'out'))
    symlinkSync(join(base, 'outside/secret.txt'), join(files, 'secret'))
    symlinkSync(`${files}-not`, join(files, 'prefix'))
    symlinkSync('a/../../outside/secret.txt', join(files, 'winding'))
    symlinkSync('out', join(files, 'chain'))
    symlinkSync('loop', join(files, 'loop'))
    symlinkSync('pong', join(files, 'ping'))
    symlinkSync('ping', join(files, 'pong'))
    const sandbox = openSandbox(files, { descriptors })
    for (const path of ['/out/secret.txt', '/secret', '/prefix', '/winding', '/chain/secret.txt', '/loop', '/ping/x'])
      assert.throws(() => sandbox.openFile(path), code('invalid_path'), path)
    assert.throws(() => sandbox.openDirectoryToRead('/out'), code('invalid_path'))
    assert.throws(() => sandbox.openDirectory('/out'), code('invalid_path'))
  })
}

test('what is absent is not_found, whatever is on the way', (t) => {
  const sandbox = openSandbox(makeTree(t, { 'a.txt': 'x' }))
  assert.throws(() => sandbox.openFile('/none'), code('not_found'))
  assert.throws(() => sandbox.openFile('/none/none'), code('not_found'))
  assert.throws(() => sandbox.openFile('/a.txt/none'), code('not_found'))
  assert.throws(() => sandbox.lstat('/none'), code('not_found'))
  assert.throws(() => sandbox.openPlace('/'), code('invalid_path'))
  assert.throws(() => sandbox.openFile('/'), code('invalid_path'))
  assert.throws(() => openSandbox(`${sandbox.rootPath}/none`).openDirectory('/'), code('not_found'))
})

test('FIFOs, sockets and devices are refused before they are opened', async (t) => {
  const base = makeTree(t)
  execFileSync('mkfifo', [join(base, 'fifo')])
  const server = createServer().listen(join(base, 'socket'))
  t.after(() => server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  if (process.getuid?.() === 0) execFileSync('mknod', [join(base, 'device'), 'c', '1', '5'])
  const sandbox = openSandbox(base)
  for (const name of readdirSync(base)) assert.throws(() => sandbox.openFile(`/${name}`), code('invalid_path'), name)
})

test('names that are not valid UTF-8 are listed, read and removed', async (t) => {
  const base = makeTree(t)
  const raw = Buffer.concat([Buffer.from(`${base}/`), Buffer.from([0x61, 0xff, 0xfe, 0x0a])])
  writeFileSync(raw, 'odd')
  const sandbox = openSandbox(base)
  const entries = await Array.fromAsync(sandbox.walk('/'), ({ path }) => path)
  assert.equal(entries.length, 1)
  const path = JSON.parse(JSON.stringify(entries[0]))
  assert.equal(read(sandbox, path), 'odd')
  await sandbox.withPlace(path, ({ parent, name }) => unlinkAt(parent, name))
  assert.deepEqual(readdirSync(base), [])
})

test('Nothing is overwritten unless requested', (t) => {
  const base = makeTree(t, { a: 'a', b: 'b', 'empty/': '', 'full/x': 'x', c: 'c' })
  using top = openSandbox(base).openDirectory('/')
  const taken = { code: 'EEXIST' }
  assert.throws(() => renameNewAt(top, 'a', top, 'b'), taken)
  assert.throws(() => renameNewAt(top, 'a', top, 'empty'), taken)
  assert.throws(() => renameNewAt(top, 'full', top, 'empty'), taken)
  assert.throws(() => renameNewAt(top, 'full', top, 'b'), taken)
  renameNewAt(top, 'a', top, 'd')
  renameNewAt(top, 'full', top, 'moved')
  assert.deepEqual(readdirSync(base).sort(), ['b', 'c', 'd', 'empty', 'moved'])
  assert.equal(readFileSync(join(base, 'b'), 'utf8'), 'b')
})

test('a file is made only where nothing is', (t) => {
  const base = makeTree(t, { 'outside.txt': 'safe', 'files/': '' })
  symlinkSync('../outside.txt', join(base, 'files/link'))
  using top = openSandbox(join(base, 'files')).openDirectory('/')
  assert.throws(() => createFileAt(top, 'link'), { code: 'EEXIST' })
  assert.throws(() => openFileAt(top, 'link'), code('invalid_path'))
})

test('a walk gives every entry once, parents first, follows nothing, and can be sorted', async (t) => {
  const base = makeTree(t, { 'outside/x': '', 'files/b/2': '', 'files/b/1': '', 'files/a': '', 'files/c/': '' })
  symlinkSync('../outside', join(base, 'files/link'))
  const sandbox = openSandbox(join(base, 'files'))
  const sorted = await Array.fromAsync(sandbox.walk('/', { sorted: true }), ({ path }) => path)
  assert.deepEqual(sorted, ['/a', '/b', '/b/1', '/b/2', '/c', '/link'])
  const any = await Array.fromAsync(sandbox.walk('/'), ({ path }) => path)
  assert.deepEqual(any.toSorted(), sorted.toSorted())
  const pruned = await Array.fromAsync(sandbox.walk('/', { sorted: true, enter: (e) => e.name !== 'b' }), (e) => e.path)
  assert.deepEqual(pruned, ['/a', '/b', '/c', '/link'])
})

test('no descriptor is left open, on success, on error, on an abandoned or an aborted walk', async (t) => {
  const base = makeTree(t, { 'a/b/c/d.txt': 'x', 'a/b/e.txt': 'y', 'f.txt': 'z' })
  symlinkSync('/etc', join(base, 'out'))
  const sandbox = openSandbox(base)
  const before = openDescriptors()
  for (let round = 0; round < 20; round++) {
    read(sandbox, '/a/b/c/d.txt')
    sandbox.mkdirs('/a/b/new')[Symbol.dispose]()
    for (const path of ['/none/x', '/out/passwd', '/a/b/e.txt/x', '/a/none'])
      assert.throws(() => sandbox.openFile(path))
    assert.throws(() => sandbox.openNewPlace('/f.txt/x/y'))
    for await (const entry of sandbox.walk('/')) if (entry.name === 'c') break
    await assert.rejects(Array.fromAsync(sandbox.walk('/', { enter: () => assert.fail('stop') })))
  }
  assert.deepEqual(openDescriptors(), before)
})

test('an aborted walk stops', async (t) => {
  const base = makeTree(t)
  for (let i = 0; i < 3000; i++) writeFileSync(join(base, `${i}`), '')
  const abort = new AbortController()
  const before = openDescriptors()
  await assert.rejects(
    async () => {
      for await (const _ of openSandbox(base).walk('/', { signal: abort.signal })) {
        abort.abort()
        const until = performance.now() + 0.05
        while (performance.now() < until);
      }
    },
    { name: 'AbortError' },
  )
  assert.deepEqual(openDescriptors(), before)
})

test('removing a tree removes links, not what they point to', async (t) => {
  const base = makeTree(t, { 'outside/keep': 'x', 'files/tree/a/b': '', 'files/tree/c/': '' })
  symlinkSync('../../outside', join(base, 'files/tree/link'))
  linkSync(join(base, 'outside/keep'), join(base, 'files/tree/hard'))
  using top = openSandbox(join(base, 'files')).openDirectory('/')
  assert.equal(await removeTree(top, 'tree', { share: '' }), true)
  assert.deepEqual(readdirSync(join(base, 'files')), [])
  assert.equal(readFileSync(join(base, 'outside/keep'), 'utf8'), 'x')
})

test('Work on whole trees does not cross into another file system, nor into a bind mount of the same one', {
  skip: withoutRoot(),
}, async (t) => {
  const base = makeTree(t, { 'outside/keep': 'x', 'files/tree/a': '', 'files/tree/tmpfs/': '', 'files/tree/bind/': '' })
  const mounts = [join(base, 'files/tree/tmpfs'), join(base, 'files/tree/bind')] as const
  using _tmpfs = mount(mounts[0], '-t', 'tmpfs', 'tmpfs')
  using _bind = mount(mounts[1], '--bind', join(base, 'outside'))
  fillTree(mounts[0], { inner: 'x' })
  const sandbox = openSandbox(join(base, 'files'))
  const entries = await Array.fromAsync(sandbox.walk('/', { sorted: true }), (e) => `${e.path} ${e.isMountPoint}`)
  assert.deepEqual(entries, ['/tree false', '/tree/a false', '/tree/bind true', '/tree/tmpfs true'])
  using top = sandbox.openDirectory('/')
  assert.equal(await removeTree(top, 'tree', { share: '' }), false)
  assert.equal(readFileSync(join(base, 'outside/keep'), 'utf8'), 'x')
  assert.equal(readFileSync(join(mounts[0], 'inner'), 'utf8'), 'x')
})

test("A path never leaves its server's folder", (t) => {
  const base = makeTree(t, { 'files/d/x': 'inside', 'outside/x': 'outside' })
  const sandbox = openSandbox(join(base, 'files'))
  using opened = sandbox.openDirectory('/d')
  execFileSync('mv', [join(base, 'files/d'), join(base, 'files/gone')])
  symlinkSync('../outside', join(base, 'files/d'))
  using file = openFileAt(opened, 'x')
  assert.equal(file.stats.size, 6n)
  mkdirSync(join(base, 'files/y'))
})
