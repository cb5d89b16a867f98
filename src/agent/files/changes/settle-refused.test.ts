// Changes that were refused, or that could not be settled: no intent is left that a later start would take for a change.
import assert from 'node:assert/strict'
import { mkdirSync, renameSync, rmdirSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Journal } from '../../journal/journal.ts'
import { createAgentFiles } from '../index.ts'
import { code, request, serverId } from '../server.testing.ts'
import { fillTree } from '../trees.testing.ts'
import { interrupted, prepared } from './settle.testing.ts'

/** With the intents that it has begun and neither completed nor dropped. */
function watched(journal: Journal) {
  const intents = new Set<string>()
  const ended = (work: (...args: never[]) => void) =>
    ((intent: { id: string }, ...rest: never[]) => {
      intents.delete(intent.id)
      work(intent as never, ...rest)
    }) as never
  const begin: Journal['begin'] = (asked) => {
    const begun = journal.begin(asked)
    intents.add(begun.intent.id)
    return begun
  }
  return { intents, journal: { ...journal, begin, complete: ended(journal.complete), drop: ended(journal.drop) } }
}

test('killed before a move, and the way to its target has become a symlink: it has no fact, and no intent is left', async (t) => {
  const { facts } = await interrupted(
    t,
    (agent) => agent.move(request({ moves: [{ from: '/a.txt', to: '/d/c.txt' }] })),
    (at) => {
      renameSync(join(at, 'd'), join(at, 'o'))
      symlinkSync('o', join(at, 'd'))
    },
  )
  assert.deepEqual(facts, [])
})

for (const [what, block, refusal] of [
  ['a symlink', (at: string) => symlinkSync('d', at), 'invalid_path'],
  ['a file', (at: string) => writeFileSync(at, ''), 'already_exists'],
] as const)
  test(`a restore that is refused since ${what} is in its way leaves no intent, and is told of only when it happens`, async (t) => {
    const { folders, open, start, restart } = await prepared(t)
    const way = join(folders.files, 'x')
    const { journal, intents } = watched(open())
    const first = start(journal)
    fillTree(folders.files, { 'x/f': 'F' })
    await first.remove(request({ root: '/', files: ['x/f'] }))
    const trashId = (await first.listTrash({ serverId })).items[0]?.id ?? ''
    rmdirSync(way)
    block(way)
    for (let i = 0; i < 2; i++) await assert.rejects(first.restoreTrash(request({ trashId })), code(refusal))
    assert.equal(intents.size, 0)
    unlinkSync(way)
    mkdirSync(way)
    await first.restoreTrash(request({ trashId }))
    const { facts } = await restart()
    assert.deepEqual(
      facts.map(({ kind }) => kind),
      ['file.deleted', 'file.restored'],
    )
  })

test('a failed change of which the disk cannot be asked is told of, and settled before the next one', async (t) => {
  const { places, open } = await prepared(t)
  const { journal, intents } = watched(open())
  const unexpected: unknown[] = []
  const agent = createAgentFiles({ layout: places, journal, onUnexpected: (error) => unexpected.push(error) })
  t.after(() => agent.stop())
  const { files, unsettled } = agent.server(serverId)
  const { openPlace, openNewPlace } = files
  const broken = Object.assign(new Error('broken'), { code: 'EIO' })
  const refuse = () => {
    throw broken
  }
  const breakDisk = () => {
    Object.assign(files, { openPlace: refuse })
    return refuse()
  }
  Object.assign(files, { openNewPlace: breakDisk })
  const move = (to: string) => agent.move(request({ moves: [{ from: '/a.txt', to }] }))
  await assert.rejects(move('/c.txt'), broken)
  assert.deepEqual([unexpected, unsettled.size, intents.size], [[broken], 1, 1])
  Object.assign(files, { openPlace, openNewPlace })
  await move('/e.txt')
  assert.deepEqual([unexpected.length, unsettled.size, intents.size], [1, 0, 0])
})
