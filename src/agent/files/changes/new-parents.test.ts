// What is placed below directories that are not there yet comes with them at once, or not at all.
import assert from 'node:assert/strict'
import fs, { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { writeContent } from '../content.ts'
import { openRoot } from '../sandbox/directory.ts'
import { openSandbox } from '../sandbox/sandbox.ts'
import { bytes, code, request, serverId, startServer, treeOf } from '../server.testing.ts'
import { makeTree, withoutRoot } from '../trees.testing.ts'
import { placedWithParents } from './new-parents.ts'

/** Every call that changes a name fails from the nth on, or says what it sees. */
function atChange(at: (nth: number, to: string) => void): Disposable & { count(): number } {
  const { mkdirSync, renameSync, linkSync } = fs
  let nth = 0
  fs.mkdirSync = ((path: string, options: object) => {
    at(++nth, String(path))
    return mkdirSync(path, options)
  }) as typeof mkdirSync
  fs.renameSync = (from, to) => {
    at(++nth, String(to))
    renameSync(from, to)
  }
  fs.linkSync = (from, to) => {
    at(++nth, String(to))
    linkSync(from, to)
  }
  syncBuiltinESMExports()
  return {
    count: () => nth,
    [Symbol.dispose]() {
      Object.assign(fs, { mkdirSync, renameSync, linkSync })
      syncBuiltinESMExports()
    },
  }
}

const EIO = () => Object.assign(new Error('EIO: injected'), { code: 'EIO' })

type Server = Awaited<ReturnType<typeof startServer>>

/** Each puts `/new/deep/er/file` there, with the content `x`. */
const WAYS: Record<string, (server: Server) => Promise<() => Promise<unknown>>> = {
  write: async ({ server }) => {
    return () => writeContent(server, '/new/deep/er/file', bytes('x'))
  },
  move: async ({ agent, at }) => {
    writeFileSync(at('file'), 'x')
    return () => agent.move(request({ moves: [{ from: '/file', to: '/new/deep/er/file' }] }))
  },
  'restore from the trash': async ({ agent, server, at }) => {
    await writeContent(server, '/new/deep/er/file', bytes('x'))
    await agent.remove(request({ root: '/', files: ['new/deep/er/file'] }))
    await agent.remove(request({ root: '/', files: ['new'] }))
    assert.equal(existsSync(at('new')), false)
    const { items } = await agent.listTrash({ serverId })
    const trashId = items.find(({ path }) => path.endsWith('file'))?.id ?? ''
    return () => agent.restoreTrash(request({ trashId }))
  },
}

for (const [name, prepare] of Object.entries(WAYS)) {
  test(`a ${name} below missing directories: they come with the file, at every instant`, async (t) => {
    const server = await startServer(t)
    const work = await prepare(server)
    const seen: boolean[] = []
    const look = () => {
      if (existsSync(server.at('new'))) seen.push(existsSync(server.at('new/deep/er/file')))
    }
    {
      using changes = atChange(look)
      await work()
      assert.ok(changes.count() > 0)
    }
    look()
    assert.equal(seen.length > 0 && seen.every(Boolean), true, JSON.stringify(seen))
    assert.equal(readFileSync(server.at('new/deep/er/file'), 'utf8'), 'x')
    assert.equal(statSync(server.at('new/deep/er/file')).nlink, 1)
  })

  test(`a ${name} below missing directories that fails leaves none of them`, async (t) => {
    const server = await startServer(t)
    const work = await prepare(server)
    for (let failing = 1; ; failing++) {
      using changes = atChange((nth) => {
        if (nth === failing) throw EIO()
      })
      const isDone = await work().then(
        () => true,
        () => false,
      )
      assert.equal(existsSync(server.at('new')), existsSync(server.at('new/deep/er/file')), `${failing}`)
      if (isDone || changes.count() < failing) break
    }
    assert.equal(readFileSync(server.at('new/deep/er/file'), 'utf8'), 'x')
  })
}

test('where somebody makes the directory meanwhile, the file goes into it', async (t) => {
  const { server, at } = await startServer(t)
  const { mkdirSync } = fs
  let isMade = false
  {
    using _changes = atChange((_nth, to) => {
      if (isMade || !/\/file$/.test(to)) return
      isMade = true
      mkdirSync(at('new'))
      writeFileSync(at('new/own'), 'own')
    })
    await writeContent(server, '/new/file', bytes('x'))
  }
  assert.equal(isMade, true)
  assert.deepEqual([readFileSync(at('new/file'), 'utf8'), readFileSync(at('new/own'), 'utf8')], ['x', 'own'])
})

test('a file on the way is in the way, however far up it is', async (t) => {
  const { agent } = await startServer(t, { file: 'x', moved: 'y' })
  for (const to of ['/file/a', '/file/a/b/c'])
    await assert.rejects(agent.move(request({ moves: [{ from: '/moved', to }] })), code('already_exists'), to)
})

test('a directory that is moved away while what goes below it is made is made again only where it fits', async (t) => {
  const { server, at, tree } = await startServer(t, { 'there/': '' })
  server.setQuota({ bytes: null, entries: 3 })
  let isMoved = false
  const { renameSync } = fs
  {
    using _changes = atChange((_nth, to) => {
      if (isMoved || !to.endsWith('/file')) return
      isMoved = true
      renameSync(at('there'), at('kept'))
    })
    await assert.rejects(writeContent(server, '/there/new/file', bytes('x')), code('quota_exceeded'))
  }
  assert.equal(isMoved, true)
  assert.deepEqual(tree(), ['kept'])
})

test('a directory that is taken away while what goes below it is made is made again', async (t) => {
  const { server, at } = await startServer(t, { 'there/': '' })
  let isTaken = false
  {
    using _changes = atChange((_nth, to) => {
      if (isTaken || !to.endsWith('/file')) return
      isTaken = true
      rmSync(at('there'), { recursive: true })
    })
    await writeContent(server, '/there/new/file', bytes('x'))
  }
  assert.equal(isTaken, true)
  assert.equal(readFileSync(at('there/new/file'), 'utf8'), 'x')
})

test('where the old name cannot be dropped, the move is refused, and the file has that name alone', async (t) => {
  const { agent, at, tree } = await startServer(t, { 'held/file': 'x' })
  const { unlinkSync } = fs
  fs.unlinkSync = (path) => {
    if (!/\/file$/.test(String(path)) || existsSync(at('held/free'))) return unlinkSync(path)
    writeFileSync(at('held/free'), '')
    throw Object.assign(new Error('EACCES: injected'), { code: 'EACCES' })
  }
  syncBuiltinESMExports()
  try {
    await assert.rejects(agent.move(request({ moves: [{ from: '/held/file', to: '/new/deep/file' }] })))
  } finally {
    fs.unlinkSync = unlinkSync
    syncBuiltinESMExports()
  }
  assert.deepEqual(tree(), ['held', 'held/file', 'held/free'])
  assert.equal(statSync(at('held/file')).nlink, 1)
})

test('without /proc, too, what is placed below new directories has one name', async (t) => {
  const base = makeTree(t, { 'files/file': 'x', 'staging/': '' })
  const files = openSandbox(join(base, 'files'), { descriptors: false })
  const folder = openRoot(join(base, 'staging'), false)
  const staged = { folder, name: 'built', [Symbol.asyncDispose]: async () => folder[Symbol.dispose]() }
  const staging = { open: () => staged, tidy: async () => {}, recover: async () => {} }
  using place = files.openPlace('/file')
  const source = { folder: place.parent, name: place.name }
  assert.equal(await placedWithParents({ files, staging }, source, ['new', 'deep', 'file']), true)
  assert.deepEqual(treeOf(join(base, 'files')), ['new', 'new/deep', 'new/deep/file'])
  assert.equal(statSync(join(base, 'files/new/deep/file')).nlink, 1)
})

test('new directories belong to whom the files were given meanwhile', { skip: withoutRoot() }, async (t) => {
  const { agent, at } = await startServer(t, { file: 'x' })
  const { linkSync, chownSync } = fs
  fs.linkSync = (from, to) => {
    linkSync(from, to)
    chownSync(at(''), 70_000, 70_000)
  }
  syncBuiltinESMExports()
  try {
    await agent.move(request({ moves: [{ from: '/file', to: '/new/deep/file' }] }))
  } finally {
    fs.linkSync = linkSync
    syncBuiltinESMExports()
  }
  assert.deepEqual(
    ['new', 'new/deep'].map((path) => statSync(at(path)).uid),
    [70_000, 70_000],
  )
  assert.equal(statSync(at('new/deep/file')).nlink, 1)
})
