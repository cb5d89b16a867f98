// Moving a large unpacked tree into one that is there: in groups, between which others have their turn.
import assert from 'node:assert/strict'
import fs, { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { until } from '../../../../test/support/until.ts'
import { openSandbox } from '../sandbox/sandbox.ts'
import { recordsOf } from '../space/parents.ts'
import { fillTree, makeTree } from '../trees.testing.ts'
import { entry, serverId, start, writeArchiveTo } from './archives.testing.ts'
import { merge } from './merge.ts'
import { unpack } from './unpack.ts'

const FILES = 3000

/** `FILES` files in a directory that is on both sides, so that each of them is a move of its own. */
function fill(base: string, content: string, count = FILES): void {
  mkdirSync(join(base, 'd/e'), { recursive: true })
  for (let index = 0; index < count; index++) writeFileSync(join(base, `d/e/${index}`), content)
}

const signal = new AbortController().signal

test('a large merge lets others have their turn, and replaces into the trash', async (t) => {
  const { agent, server, at } = await start(t)
  fill(at(''), 'old', FILES / 2)
  fillTree(at(''), { 'd/kept': 'kept' })
  const staged = makeTree(t)
  fill(staged, 'new')
  // How many are left, as seen by whoever has a turn meanwhile.
  const seen = new Set<number>()
  const looking = setInterval(() => seen.add(readdirSync(join(staged, 'd/e')).length), 0)
  t.after(() => clearInterval(looking))
  await merge(server, openSandbox(staged), [], { overwrite: true, signal })
  assert.ok(
    [...seen].some((left) => left > 0 && left < FILES),
    `${[...seen]}`,
  )
  assert.equal(readdirSync(at('d/e')).length, FILES)
  for (let index = 0; index < FILES; index++) assert.equal(readFileSync(at(`d/e/${index}`), 'utf8'), 'new')
  assert.equal(readFileSync(at('d/kept'), 'utf8'), 'kept')
  const trashed: string[] = []
  for (let after: string | null = null, isFirst = true; isFirst || after; isFirst = false) {
    const page: Awaited<ReturnType<typeof agent.listTrash>> = await agent.listTrash({
      serverId,
      limit: 1000,
      ...(after ? { after } : {}),
    })
    trashed.push(...page.items.map(({ path }) => path))
    after = page.next
  }
  assert.equal(new Set(trashed).size, FILES / 2)
})

test('what comes while it runs is replaced too, and kept in the trash; what goes is no fault', async (t) => {
  const { agent, server, at } = await start(t)
  fillTree(at(''), { 'd/old': 'old', 'd/going': 'going' })
  const staged = makeTree(t)
  fillTree(staged, { 'd/old': 'new', 'd/going': 'new', 'd/late': 'new' })
  const prepare: typeof server.trash.prepare = async (...batch) => {
    // Before the first batch: the late one has a batch of its own.
    if (!existsSync(at('d/late'))) {
      fillTree(at(''), { 'd/late': 'late' })
      rmSync(at('d/going'))
    }
    return await server.trash.prepare(...batch)
  }
  const meanwhile = { ...server, trash: { ...server.trash, prepare } }
  await merge(meanwhile, openSandbox(staged), [], { overwrite: true, signal })
  for (const name of ['old', 'going', 'late']) assert.equal(readFileSync(at(`d/${name}`), 'utf8'), 'new')
  const { items } = await agent.listTrash({ serverId, limit: 10 })
  assert.deepEqual(items.map(({ path }) => path).sort(), ['/d/late', '/d/old'])
})

test('Everything is checked before the first item moves.', async (t) => {
  const { server, at } = await start(t)
  fillTree(at(''), { 'd/e/2999': 'old' })
  const staged = makeTree(t)
  fill(staged, 'new')
  const work = merge(server, openSandbox(staged), [], { overwrite: false, signal })
  await assert.rejects(work, { code: 'already_exists' })
  assert.deepEqual(readdirSync(at('d/e')), ['2999'])
  assert.equal(readdirSync(join(staged, 'd/e')).length, FILES)
})

/** `work` while one of its links or renames, the n-th, does this instead first. */
async function atMove(nth: number, what: () => void, work: () => Promise<unknown>): Promise<void> {
  const { linkSync } = fs
  let moves = 0
  fs.linkSync = (from, to) => {
    if (++moves === nth) what()
    linkSync(from, to)
  }
  syncBuiltinESMExports()
  try {
    await work()
  } finally {
    fs.linkSync = linkSync
    syncBuiltinESMExports()
  }
}

test('a large merge that something gets in the way of is taken back', async (t) => {
  const { server, at } = await start(t)
  mkdirSync(at('d/e'), { recursive: true })
  const staged = makeTree(t)
  fill(staged, 'new')
  const put = () => {
    for (let index = 0; index < FILES; index++)
      if (!existsSync(at(`d/e/${index}`))) return writeFileSync(at(`d/e/${index}`), 'of the game')
  }
  const merging = () => merge(server, openSandbox(staged), [], { overwrite: false, signal })
  await atMove(1500, put, () => assert.rejects(merging(), { code: 'already_exists' }))
  const left = readdirSync(at('d/e'))
  assert.equal(left.length, 1)
  assert.equal(readFileSync(at(`d/e/${left[0]}`), 'utf8'), 'of the game')
  assert.equal(readdirSync(join(staged, 'd/e')).length, FILES)
})

test('what stays of an unpack that fails in the middle counts, and its error says how much it is', async (t) => {
  const { agent, server, at, staged, context } = await start(t, { 'd/own': 'own' })
  const names = Array.from({ length: 40 }, (_, index) => `d/${index}`)
  await writeArchiveTo(
    at('a.tar'),
    'tar',
    names.map((path) => entry(path, { text: 'x'.repeat(10_000) })),
  )
  await agent.usage({ serverId })
  const fails = () => {
    throw Object.assign(new Error('EDQUOT: injected'), { code: 'EDQUOT' })
  }
  const work = { kind: 'files.unpack', path: '/a.tar', directory: '/', overwrite: true } as const
  await atMove(31, fails, () =>
    assert.rejects(unpack(server, work, context), {
      code: 'disk_full',
      message: /30 of 41 files and directories had been moved into place, and stay there/,
    }),
  )
  assert.equal(readdirSync(at('d')).length, 31)
  assert.ok((server.usage.knownBytes() ?? 0) >= 30 * 12_288, `${server.usage.knownBytes()}`)
  assert.deepEqual(staged(), [])
  assert.equal((await agent.usage({ serverId })).reservedBytes, 0)
})

test('a merge that is cancelled while it is checked moves nothing', async (t) => {
  const { server, at } = await start(t)
  mkdirSync(at('d/e'), { recursive: true })
  const staged = makeTree(t)
  fill(staged, 'new')
  const abort = new AbortController()
  queueMicrotask(() => abort.abort())
  const work = merge(server, openSandbox(staged), [], { overwrite: false, signal: abort.signal })
  await assert.rejects(work, { name: 'AbortError' })
  assert.deepEqual(readdirSync(at('d/e')), [])
})

/** The last of five cannot be moved. `before`: what happens just before that. Files come by a link, directories by a rename. */
async function refusedAtLast(merging: () => Promise<unknown>, before = () => {}): Promise<void> {
  const { linkSync, renameSync } = fs
  let moves = 0
  const counted =
    (move: typeof renameSync): typeof renameSync =>
    (from, to) => {
      if (++moves === 5) {
        before()
        throw Object.assign(new Error('EDQUOT: injected'), { code: 'EDQUOT' })
      }
      move(from, to)
    }
  Object.assign(fs, { linkSync: counted(linkSync), renameSync: counted(renameSync) })
  syncBuiltinESMExports()
  try {
    await assert.rejects(merging(), { code: 'disk_full' })
  } finally {
    Object.assign(fs, { linkSync, renameSync })
    syncBuiltinESMExports()
  }
}

/** A file system's clock may stand still for some milliseconds. */
async function untilLater(base: string): Promise<void> {
  const time = () => {
    writeFileSync(join(base, 'time'), '')
    return statSync(join(base, 'time'), { bigint: true }).ctimeNs
  }
  const begun = time()
  await until(async () => time() > begun)
  rmSync(join(base, 'time'))
}

async function startMerge(t: TestContext) {
  const started = await start(t)
  fillTree(started.at(''), { kept: 'kept' })
  const staged = makeTree(t)
  fillTree(staged, { a: 'a', b: 'b', c: 'c', 'one/deep/x': 'x', 'two/deep/x': 'x' })
  await untilLater(started.at(''))
  const merging = () => merge(started.server, openSandbox(staged), ['to'], { overwrite: false, signal })
  return { ...started, merging }
}

test('one of a few that cannot be moved takes those before it back', async (t) => {
  const { tree, merging } = await startMerge(t)
  await refusedAtLast(merging)
  assert.deepEqual(tree(), ['kept', 'to'])
  await merging()
  const folders = ['one', 'two'].flatMap((one) => [`to/${one}`, `to/${one}/deep`, `to/${one}/deep/x`])
  assert.deepEqual(tree(), ['kept', 'to', 'to/a', 'to/b', 'to/c', ...folders])
})

const PUT: Record<string, (moved: { file: string; folder: string }) => string> = {
  'in place of a file': ({ file }) => {
    rmSync(file)
    return file
  },
  'into a file': ({ file }) => file,
  'into a new folder': ({ folder }) => join(folder, 'save'),
  'deep in a new folder': ({ folder }) => join(folder, 'deep/save'),
}

for (const [what, put] of Object.entries(PUT))
  test(`what a game has put ${what} meanwhile stays when an archive is taken back`, async (t) => {
    const { at, merging } = await startMerge(t)
    const moved = (names: string[]) => names.map((name) => at(`to/${name}`)).find((path) => existsSync(path)) ?? ''
    let path = ''
    await refusedAtLast(merging, () => {
      path = put({ file: moved(['a', 'b', 'c']), folder: moved(['one', 'two']) })
      writeFileSync(path, 'of the game')
    })
    assert.equal(readFileSync(path, 'utf8'), 'of the game')
  })

test('room for the records of what a merge replaces is nobody else’s while it runs', async (t) => {
  const { agent, server, at } = await start(t)
  fillTree(at(''), { 'd/old': 'old' })
  const staged = makeTree(t)
  fillTree(staged, { 'd/old': 'new' })
  const { usedBytes } = await agent.usage({ serverId })
  const records = recordsOf([{ path: '/d/old' }])
  await agent.setQuota({ serverId, quotaBytes: usedBytes + records.bytes, maxEntries: null })
  const begin = async () => {
    await assert.rejects(server.usage.room({ bytes: 4096, entries: 0 }), { code: 'quota_exceeded' })
    return openSandbox(staged)
  }
  await merge(server, openSandbox(staged), [], { overwrite: true, signal, begin })
  assert.equal(readFileSync(at('d/old'), 'utf8'), 'new')
  assert.deepEqual(
    (await agent.listTrash({ serverId })).items.map(({ path }) => path),
    ['/d/old'],
  )
})
