import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { code, request, serverId, startServer } from '../server.testing.ts'
import { fillTree } from '../trees.testing.ts'
import { type FreedTrash, planFreeing } from './trash-freeing.ts'

test('deleting checks everything first', async (t) => {
  const { agent, at, tree } = await startServer(t, { 'a.txt': '', 'd/x': '' })
  symlinkSync('/etc', at('etc'))
  const before = tree()
  for (const bad of ['', '.', '..', '/', 'a\0', 'd/..', '../a', 'etc/passwd', '/etc/passwd', './', '//'])
    await assert.rejects(agent.remove(request({ root: '/', files: ['a.txt', bad] })), code('invalid_path'), bad)
  await assert.rejects(agent.remove(request({ root: '/etc', files: ['passwd'] })), code('invalid_path'))
  assert.deepEqual(tree(), before)
})

test('deleting moves into the trash, names what was missing, and removes a link rather than its target', async (t) => {
  const { agent, at, tree } = await startServer(t, { 'a.txt': 'a', 'd/x/y': 'y', 'keep/z': 'z' })
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
  const { agent, tree } = await startServer(t, { 'a.txt': 'a' })
  const removal = request({ root: '/', files: ['a.txt'] })
  assert.deepEqual(await agent.remove(removal), { deleted: ['a.txt'], missing: [] })
  assert.deepEqual(await agent.remove(removal), { deleted: ['a.txt'], missing: [] })
  fillTree(agent.server(serverId).folders.files, { b: 'b' })
  const copying = request({ location: '/b' })
  assert.equal((await agent.copy(copying)).name, (await agent.copy(copying)).name)
  assert.deepEqual(tree(), ['b', 'b copy'])
})

test('Restoring renames it back, creating missing parents; if the name is taken, it gets a free one (a restored.txt).', async (t) => {
  const { agent, at } = await startServer(t, { 'd/a.txt': 'first', 'e/f/g': 'g' })
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

test('the items of one deletion come back at the same time', async (t) => {
  const names = Array.from({ length: 20 }, (_, index) => `f${index}`)
  const { agent, folders, tree } = await startServer(t, Object.fromEntries(names.map((name) => [name, name])))
  await agent.remove(request({ root: '/', files: names }))
  const { items } = await agent.listTrash({ serverId })
  await Promise.all(items.map(({ id }) => agent.restoreTrash(request({ trashId: id }))))
  assert.deepEqual(tree(), names.toSorted())
  assert.deepEqual(readdirSync(folders.trash), [])
})

test('an item that is back is answered as back, also where its empty record cannot be removed', async (t) => {
  const { agent, folders, tree } = await startServer(t, { 'a.txt': 'a' })
  await agent.remove(request({ root: '/', files: ['a.txt'] }))
  const { items } = await agent.listTrash({ serverId })
  const [batch = ''] = readdirSync(folders.trash)
  // A folder with something in it is not removed, as on a disk that fails.
  fillTree(join(folders.trash, batch), { stranger: '' })
  assert.equal((await agent.restoreTrash(request({ trashId: items[0]?.id ?? '' }))).path, '/a.txt')
  assert.deepEqual(tree(), ['a.txt'])
  assert.deepEqual((await agent.listTrash({ serverId })).items, [])
})

test('the trash is listed in pages, newest first', async (t) => {
  const { agent } = await startServer(t, { a: '', b: '', c: '', d: '', e: '' })
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
  const { agent, server, folders } = await startServer(
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

test('what somebody is about to move things into is not emptied, however much space is wanted', async (t) => {
  const { agent, server, folders } = await startServer(t, { a: 'x'.repeat(5000), b: 'y' })
  await agent.remove(request({ root: '/', files: ['a'] }))
  const batch = await server.trash.prepare('replaced', [{ path: '/b', kind: 'file' }])
  await agent.emptyTrash({ serverId })
  assert.deepEqual(readdirSync(folders.trash), [batch.id])
  batch[Symbol.dispose]()
  await agent.emptyTrash({ serverId })
  assert.deepEqual(readdirSync(folders.trash), [])
})

test('Trash is freed oldest first, item by item, no more than needed', async (t) => {
  const freed: FreedTrash[] = []
  const names = ['a', 'b', 'c', 'd']
  const tree = Object.fromEntries(names.map((name) => [name, Buffer.alloc(4096)]))
  const { agent, server, at } = await startServer(t, tree, {
    recordFreed: async (_server, what) => void freed.push(what),
  })
  await agent.remove(request({ root: '/', files: names }))
  const plan = await planFreeing([server.trash], { bytes: 4097, entries: 0 })
  assert.equal(await planFreeing([server.trash], { bytes: 6 * 4096 + 1, entries: 0 }), undefined)
  const { items } = await agent.listTrash({ serverId })
  await agent.restoreTrash(request({ trashId: items[0]?.id ?? '' }))
  for (const [trash, planned] of plan ?? [])
    await (await trash.setAside(planned, { reason: 'quota', requestedBy: serverId }))()
  assert.deepEqual(
    (await agent.listTrash({ serverId })).items.map(({ path }) => path),
    ['/c', '/d'],
  )
  assert.deepEqual(readFileSync(at('a')), Buffer.alloc(4096))
  assert.deepEqual(
    freed.map(({ id: _id, ...entry }) => entry),
    [{ reason: 'quota', requestedBy: serverId, freedBytes: 4096, items: 1, paths: ['/b'] }],
  )
})

test('After a crash, the next start finishes and records this.', async (t) => {
  const recorded: FreedTrash[] = []
  let isBroken = true
  const { agent, server, folders } = await startServer(
    t,
    { 'tree/a': Buffer.alloc(4096), b: Buffer.alloc(4096) },
    {
      recordFreed: async (_server, what) => {
        if (isBroken) throw new Error('killed here')
        recorded.push(what)
      },
    },
  )
  await agent.remove(request({ root: '/', files: ['tree', 'b'] }))
  const plan = await planFreeing([server.trash], { bytes: 12_288, entries: 0 })
  const free = async () => {
    for (const [trash, items] of plan ?? [])
      await (await trash.setAside(items, { reason: 'disk', requestedBy: 'srv_other' }))()
  }
  await assert.rejects(free(), /killed here/)
  assert.deepEqual((await agent.listTrash({ serverId })).items, [])
  assert.equal(readdirSync(folders.trash).length, 1, 'nothing is removed before it is recorded')
  isBroken = false
  await server.trash.recover()
  assert.deepEqual(readdirSync(folders.trash), [])
  assert.deepEqual(
    recorded.map(({ id: _id, ...entry }) => entry),
    [{ reason: 'disk', requestedBy: 'srv_other', freedBytes: 12_288, items: 2, paths: ['/tree', '/b'] }],
  )
})

test('a batch of more than 65,536 items is listed to its end, and its last item comes back', async (t) => {
  const { agent, server, folders, tree } = await startServer(t)
  const items = Array.from({ length: 0x10002 }, (_, index) => ({ path: `/f${index}`, kind: 'file' as const }))
  using batch = await server.trash.prepare('replaced', items)
  fillTree(join(folders.trash, batch.id), { ffff: 'before the last but one', '10000': 'last but one', '10001': 'last' })
  const first = await agent.listTrash({ serverId, limit: 1 })
  const rest = await agent.listTrash({ serverId, limit: 5, after: first.next })
  assert.deepEqual(
    [...first.items, ...rest.items].map(({ path }) => path),
    ['/f65535', '/f65536', '/f65537'],
  )
  await agent.restoreTrash(request({ trashId: rest.items[1]?.id ?? '' }))
  assert.deepEqual(tree(), ['f65537'])
})
