// A process that dies between any two steps of a change: at the next start the change has its fact if it is on the disk,
// and none if it is not. The process is cut off by a journal that stops at a step; the next one is new on the same disk.
import assert from 'node:assert/strict'
import { existsSync, linkSync, readdirSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { KeptRequest } from '../../../contract/agent.ts'
import { isFailure } from '../../../contract/errors.ts'
import { writeContent } from '../content.ts'
import type { FilesOfAgent } from '../index.ts'
import { bytes, code, request, serverId, treeOf } from '../server.testing.ts'
import { fillTree } from '../trees.testing.ts'
import { writeBatch } from '../uploads/batch.ts'
import { BY_THE_SYSTEM } from './changes.ts'
import { dying, interrupted, prepared } from './settle.testing.ts'

const change = (kind: string) => ({ kind, requestId: null, origin: BY_THE_SYSTEM })
async function* named(...names: string[]) {
  for (const name of names) yield { name, bytes: bytes(name) }
}

interface Operation {
  kind: string
  work(agent: FilesOfAgent, trashId: string): Promise<unknown>
  properties: (trashId: string) => object
}

const OPERATIONS: Record<string, Operation> = {
  'make a folder': {
    kind: 'file.folder_created',
    work: (agent) => agent.makeFolder(request({ path: '/d/new', name: 'deep' })),
    properties: () => ({ path: '/d/new/deep' }),
  },
  delete: {
    kind: 'file.deleted',
    work: (agent) => agent.remove(request({ root: '/', files: ['a.txt', 'd', 'nothing'] })),
    properties: () => ({ root: '/', files: ['a.txt', 'd'], count: 2 }),
  },
  'copy a file': {
    kind: 'file.copied',
    work: (agent) => agent.copy(request({ location: '/a.txt' })),
    properties: () => ({ from: '/a.txt', to: '/a copy.txt' }),
  },
  'copy a folder': {
    kind: 'file.copied',
    work: (agent) => agent.copy(request({ location: '/d' })),
    properties: () => ({ from: '/d', to: '/d copy' }),
  },
  move: {
    kind: 'file.moved',
    work: (agent) =>
      agent.move(
        request({
          moves: [
            { from: '/a.txt', to: '/b.txt' },
            { from: '/d', to: '/e/f' },
          ],
          overwrite: true,
        }),
      ),
    properties: () => ({
      moves: [
        { from: '/a.txt', to: '/b.txt' },
        { from: '/d', to: '/e/f' },
      ],
      count: 2,
    }),
  },
  'restore from the trash': {
    kind: 'file.restored',
    work: (agent, trashId) => agent.restoreTrash(request({ trashId })),
    properties: (trashId) => ({ trashId, path: '/trashed.txt' }),
  },
  'write content': {
    kind: 'file.written',
    work: (agent) => writeContent(agent.server(serverId), '/a.txt', bytes('new'), { change: change('file.written') }),
    properties: () => ({ path: '/a.txt', sizeBytes: 3 }),
  },
  'upload a form': {
    kind: 'file.uploaded',
    work: (agent) =>
      writeBatch(agent.server(serverId), named('up/one', 'a.txt'), {
        directory: '/',
        overwrite: true,
        maxBytes: 1e6,
        expectedBytes: 0,
        signal: new AbortController().signal,
        change: change('file.uploaded'),
      }),
    properties: () => ({ directory: '/', files: ['up/one', 'a.txt'], count: 2, sizeBytes: 11, protocol: 'multipart' }),
  },
}

const settled = (facts: { kind: string; properties: object }[]) =>
  facts.map(({ kind, properties }) => [kind, properties])

for (const [name, { kind, work, properties }] of Object.entries(OPERATIONS)) {
  for (const step of ['after the intent', 'after the disk work', 'after the fact'] as const) {
    test(`${name}, killed ${step}: one fact if and only if it is on the disk`, async (t) => {
      const { folders, trashId, open, start, restart } = await prepared(t)
      const before = treeOf(folders.files)
      const { promise: death, resolve: died } = Promise.withResolvers<void>()
      void work(start(dying(open(), step, died)), trashId).catch(() => {})
      await death
      const { facts } = await restart()
      if (step === 'after the intent') {
        assert.deepEqual(settled(facts), [])
        assert.deepEqual(treeOf(folders.files), before)
      } else assert.deepEqual(settled(facts), [[kind, properties(trashId)]])
      const again = await restart()
      assert.deepEqual(
        again.facts.map(({ id }) => id),
        facts.map(({ id }) => id),
        'settled once, under one id',
      )
    })
  }
}

for (const step of ['after the intent', 'after the disk work', 'after the fact'] as const) {
  test(`empty the trash, killed ${step}: one fact if and only if it is on the disk`, async (t) => {
    const { folders, open, start, restart } = await prepared(t)
    const { promise: death, resolve: died } = Promise.withResolvers<void>()
    void start(dying(open(), step, died))
      .emptyTrash(request({}))
      .catch(() => {})
    await death
    const { facts } = await restart()
    const isEmpty = readdirSync(folders.trash).length === 0
    assert.equal(isEmpty, step !== 'after the intent')
    assert.deepEqual(
      facts.map(({ kind }) => kind),
      isEmpty ? ['file.trash_emptied'] : [],
    )
  })
}

test('killed after one of two moves, the fact tells of that one', async (t) => {
  const moves = [
    { from: '/a.txt', to: '/c.txt' },
    { from: '/b.txt', to: '/e.txt' },
  ]
  const { facts } = await interrupted(
    t,
    (agent) => agent.move(request({ moves })),
    (at) => renameSync(join(at, 'a.txt'), join(at, 'c.txt')),
  )
  assert.deepEqual(settled(facts), [['file.moved', { moves: [moves[0]], count: 1 }]])
})

test('killed while a moved file had both names, it has the new one alone', async (t) => {
  const { facts, folders } = await interrupted(
    t,
    (agent) => agent.move(request({ moves: [{ from: '/a.txt', to: '/c.txt' }] })),
    (at) => linkSync(join(at, 'a.txt'), join(at, 'c.txt')),
  )
  assert.equal(facts.length, 1)
  assert.equal(existsSync(join(folders.files, 'a.txt')), false)
  assert.equal(statSync(join(folders.files, 'c.txt')).nlink, 1)
})

test('killed after the parent of a folder was made, the fact tells of the parent', async (t) => {
  const { facts } = await interrupted(
    t,
    (agent) => agent.makeFolder(request({ path: '/new', name: 'deep' })),
    (at) => fillTree(at, { 'new/': '' }),
  )
  assert.deepEqual(settled(facts), [['file.folder_created', { path: '/new' }]])
})

test('a form of which the second file is refused tells of the first', async (t) => {
  const { open, start } = await prepared(t)
  const journal = open()
  const agent = start(journal)
  const server = agent.server(serverId)
  const seen = (await journal.read({ limit: 10, waitMs: 0 })).length
  const sources = async function* () {
    yield { name: 'one', bytes: bytes('one') }
    yield { name: 'two', bytes: bytes('two') }
  }
  // Somebody makes a directory of that name after everything was checked, as a game may.
  const place = server.files.openNewPlace
  Object.assign(server.files, {
    openNewPlace(path: readonly string[]) {
      if (path.at(-1) === 'two') fillTree(server.folders.files, { 'two/x': '' })
      return place(path)
    },
  })
  const form = { directory: '/', overwrite: true, maxBytes: 1e6, expectedBytes: 0 }
  const options = { ...form, signal: new AbortController().signal, change: change('file.uploaded') }
  await assert.rejects(writeBatch(server, sources(), options), code('invalid_path'))
  const facts = (await journal.read({ limit: 10, waitMs: 0 })).slice(seen)
  assert.deepEqual(
    facts.map(({ properties }) => properties.files),
    [['one']],
  )
})

test('two who want the same at once: one changes it and has the fact, the other has none', async (t) => {
  const { trashId, open, start } = await prepared(t)
  const journal = open()
  const agent = start(journal)
  const except = (await journal.read({ limit: 10, waitMs: 0 })).map(({ id }) => id)
  const twice = async (work: () => Promise<unknown>) =>
    (await Promise.allSettled([work(), work()])).filter(({ status }) => status === 'fulfilled').length
  const move = () => agent.move(request({ moves: [{ from: '/a.txt', to: '/c.txt' }], overwrite: true }))
  assert.equal(await twice(move), 1)
  assert.equal(await twice(() => agent.restoreTrash(request({ trashId }))), 1)
  const made = await Promise.all([1, 2].map(() => agent.makeFolder(request({ path: '/p/q', name: 'r' }))))
  assert.deepEqual(made.map(({ created }) => created).sort(), [false, true])
  // The last is offered last: a second one of any other would be there by then.
  const kinds: string[] = []
  while (!kinds.includes('file.folder_created')) {
    const facts = await journal.read({ limit: 10, waitMs: 60_000, except })
    kinds.push(...facts.map(({ kind }) => kind))
    await journal.forget({ ids: facts.map(({ id }) => id) })
  }
  assert.deepEqual(kinds, ['file.moved', 'file.restored', 'file.folder_created'])
})

const kept: KeptRequest = { tokenId: 'tok_1', key: 'k', fingerprint: 'f', answerKey: '' }

test('a copy that is asked for again after a crash, with the same key, is answered and not made again', async (t) => {
  const { folders, open, start, restart } = await prepared(t)
  const asked = { serverId, requestId: 'tok_1 k', location: '/a.txt', origin: { cause: null, idempotency: kept } }
  const { promise: death, resolve: died } = Promise.withResolvers<void>()
  const first = start(dying(open(), 'after the disk work', died)).copy(asked)
  await death
  const { agent } = await restart()
  assert.deepEqual(await agent.copy(asked), await first)
  assert.deepEqual(
    treeOf(folders.files).filter((name) => name.includes('copy')),
    ['a copy.txt'],
  )
  const other = { ...asked, origin: { cause: null, idempotency: { ...kept, fingerprint: 'another' } } }
  await assert.rejects(agent.copy(other), (error) => isFailure(error, 'idempotency_conflict'))
})

test('an intent of a server that is gone is dropped', async (t) => {
  const { places, open, start, restart } = await prepared(t)
  const { promise: death, resolve: died } = Promise.withResolvers<void>()
  void start(dying(open(), 'after the disk work', died)).makeFolder(request({ path: '/', name: 'n' }))
  await death
  renameSync(places.server(serverId).root, join(places.servers, 'elsewhere'))
  await assert.rejects(restart(), /No such server/)
  assert.deepEqual(open().unsettled(), [])
})
