// Whatever a tenant has put beside each other or below each other, no operation on it takes a long turn of the event loop.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { watchTurns } from '../../../test/support/turns.ts'
import { request, startServer } from './server.testing.ts'

async function withoutLongTurn(work: () => Promise<void>): Promise<void> {
  using watch = watchTurns()
  await watch.ready
  await work()
  assert.deepEqual(await watch.longTurns(), [])
}

const COPIES = 8000

/** A file with copies `from` to `to` beside it. */
function fillCopies(folder: string, word: string, from: number, to: number): void {
  const name = (number: number) => `a ${word}${number === 1 ? '' : ` ${number}`}.txt`
  writeFileSync(join(folder, 'a.txt'), '')
  for (let number = from; number <= to; number++) writeFileSync(join(folder, name(number)), '')
}

test('the name of a copy, and of what is restored, is found without a long turn, however many there are', async (t) => {
  const { agent, at } = await startServer(t)
  fillCopies(at(''), 'copy', 1, COPIES)
  fillCopies(at(''), 'restored', 1, COPIES)
  await agent.remove(request({ root: '/', files: ['a.txt'] }))
  writeFileSync(at('a.txt'), '')
  const trashId = (await agent.listTrash(request({}))).items[0]?.id ?? ''
  await withoutLongTurn(async () => {
    assert.equal((await agent.copy(request({ location: '/a.txt' }))).path, `/a copy ${COPIES + 1}.txt`)
    assert.equal((await agent.copy(request({ location: '/a copy 2.txt' }))).path, `/a copy ${COPIES + 2}.txt`)
    assert.equal((await agent.restoreTrash(request({ trashId }))).path, `/a restored ${COPIES + 1}.txt`)
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
