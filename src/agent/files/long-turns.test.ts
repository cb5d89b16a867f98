// Whatever a tenant has put beside each other or below each other, no operation on it takes a long turn of the event loop.
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { watchTurns } from '../../../test/support/turns.ts'
import { merge } from './archives/merge.ts'
import { pack } from './archives/pack.ts'
import { BY_THE_SYSTEM } from './changes/changes.ts'
import { openSandbox } from './sandbox/sandbox.ts'
import { bytes, code, request, serverId, startServer } from './server.testing.ts'
import { makeTree } from './trees.testing.ts'
import { writeBatch } from './uploads/batch.ts'

async function withoutLongTurn(work: () => Promise<void>): Promise<void> {
  using watch = watchTurns()
  await watch.ready
  await work()
  assert.deepEqual(await watch.longTurns(), [])
}

const COPIES = 15_000

/** A file with copies `from` to `to` beside it. */
function fillCopies(folder: string, word: string, from: number, to: number): void {
  const name = (number: number) => `a ${word}${number === 1 ? '' : ` ${number}`}.txt`
  writeFileSync(join(folder, 'a.txt'), '')
  for (let number = from; number <= to; number++) writeFileSync(join(folder, name(number)), '')
}

test('a copy is named without a long turn, however many there are, and what was not restored looked for', async (t) => {
  const { agent, server, at } = await startServer(t, { 'z.txt': '' })
  await agent.remove(request({ root: '/', files: ['z.txt'] }))
  const trashId = (await agent.listTrash({ serverId })).items[0]?.id ?? ''
  fillCopies(at(''), 'copy', 1, COPIES)
  const copied = async (location: string) => (await agent.copy(request({ location }))).path
  const broken = Object.assign(new Error('broken'), { code: 'EIO' })
  Object.assign(server.trash, { restore: () => Promise.reject(broken) })
  await withoutLongTurn(async () => {
    assert.equal(await copied('/a.txt'), `/a copy ${COPIES + 1}.txt`)
    assert.equal(await copied('/a copy 2.txt'), `/a copy ${COPIES + 2}.txt`)
    await assert.rejects(agent.restoreTrash(request({ trashId })), broken)
  })
})

test('a copy takes a free name also where some between are free, or the numbers end', async (t) => {
  const { agent, at } = await startServer(t)
  fillCopies(at(''), 'copy', 1, 5)
  fillCopies(at(''), 'copy', 7, 300)
  const copied = async () => (await agent.copy(request({ location: '/a.txt' }))).path
  assert.equal(await copied(), '/a copy 6.txt')
  assert.equal(await copied(), '/a copy 301.txt')
  // Every one that is looked at on the way up.
  for (let number = 17; number < 2 ** 30; number = 2 * number - 1) writeFileSync(at(`a copy ${number}.txt`), '')
  await assert.rejects(copied(), { code: 'already_exists' })
})

const DEEP = Array(100).fill('d').join('/')
const MANY = 60
const signal = new AbortController().signal
const numbers = Array.from({ length: MANY }, (_, index) => index)

/** Many files in a directory far down. */
async function startDeep(...[t]: Parameters<typeof startServer>) {
  const started = await startServer(t)
  mkdirSync(started.at(DEEP), { recursive: true })
  for (const number of numbers) writeFileSync(started.at(`${DEEP}/f${number}`), '')
  return started
}

const deepMoves = numbers.map((number) => ({ from: `/${DEEP}/f${number}`, to: `/${DEEP}/g${number}` }))

test('many deep moves are checked without a long turn', async (t) => {
  const { agent, at } = await startDeep(t)
  await withoutLongTurn(async () => {
    const moves = [...deepMoves, { from: `/${DEEP}/missing`, to: `/${DEEP}/new` }]
    await assert.rejects(agent.move(request({ moves })), code('not_found'))
  })
  assert.equal(readdirSync(at(DEEP)).filter((name) => name.startsWith('f')).length, MANY)
})

test('many deep moves are taken back, and settled, without a long turn', async (t) => {
  const { agent, at, tree } = await startDeep(t)
  mkdirSync(at(Array(60).fill('e').join('/')), { recursive: true })
  mkdirSync(at('dir'))
  const before = tree()
  const tooDeep = [
    { from: '/e', to: '/dir/e' },
    { from: '/dir', to: `/${'n/'.repeat(80)}dir` },
  ]
  await withoutLongTurn(async () => {
    const moves = [...deepMoves, ...tooDeep]
    await assert.rejects(agent.move(request({ moves })), code('invalid_path'))
  })
  assert.deepEqual(tree(), before)
})

test('a form of many files far down is checked without a long turn', async (t) => {
  const { server, at } = await startServer(t)
  mkdirSync(at(DEEP), { recursive: true })
  async function* files() {
    for (const number of numbers) yield { name: `u${number}`, bytes: bytes() }
  }
  const form = { directory: DEEP, overwrite: false, maxBytes: 1e6, expectedBytes: 0, signal }
  const change = { kind: 'file.uploaded', requestId: null, origin: BY_THE_SYSTEM }
  await withoutLongTurn(async () => {
    await writeBatch(server, files(), { ...form, change })
  })
  assert.equal(readdirSync(at(DEEP)).length, MANY)
})

test('many deep files are packed without a long turn', async (t) => {
  const { server, at } = await startDeep(t)
  const files = numbers.map((number) => `f${number}`)
  await withoutLongTurn(async () => {
    const work = { kind: 'files.pack', root: `/${DEEP}`, files, format: 'tar', target: '/a.tar' } as const
    await pack(server, work, { taskId: 'job_1', serverId, signal, report: () => {} })
  })
  assert.ok(readdirSync(at('')).includes('a.tar'))
})

test('a tree of directories that are all there is merged without a long turn', async (t) => {
  const { server, at } = await startServer(t)
  const staged = makeTree(t)
  for (const base of [at(''), staged])
    for (let index = 0; index < 1500; index++)
      mkdirSync(join(base, `d${Math.floor(index / 200)}/x${index}`), { recursive: true })
  await withoutLongTurn(() => merge(server, openSandbox(staged), [], { overwrite: false, signal }))
})
