// A process that is cut off by a journal that stops at a step, and the next one, which is new on the same disk.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { createJournal, type Journal } from '../../journal/journal.ts'
import { layout } from '../../layout.ts'
import { createAgentFiles, type FilesOfAgent } from '../index.ts'
import { request, serverId } from '../server.testing.ts'
import { fillTree, makeTree } from '../trees.testing.ts'

export type Step = 'after the intent' | 'after the disk work' | 'after the fact'

/** The journal of a process that dies at that step: nothing it writes later reaches the disk. */
export function dying(journal: Journal, step: Step, died: () => void): Journal {
  const never = new Promise<void>(() => {})
  return {
    ...journal,
    begin(intent) {
      const begun = journal.begin(intent)
      if (step !== 'after the intent') return begun
      void begun.durable.then(died)
      return { ...begun, durable: never }
    },
    complete(intent, outcome) {
      if (step === 'after the fact') journal.complete(intent, outcome)
      died()
    },
  }
}

const FILES = { 'a.txt': 'A', 'b.txt': 'B', 'd/x': 'X', 'd/y': 'Y' }

export async function prepared(t: TestContext) {
  const places = layout(makeTree(t, { [`servers/${serverId}/files/`]: '' }))
  fillTree(places.server(serverId).files, { ...FILES, 'trashed.txt': 'T' })
  const first = createAgentFiles({ layout: places, onUnexpected: assert.ifError })
  await first.remove(request({ root: '/', files: ['trashed.txt'] }))
  const trashId = (await first.listTrash({ serverId })).items[0]?.id ?? ''
  await first.stop()
  const open = () => {
    const journal = createJournal({ folder: places.journal, now: Date.now, onUnexpected: assert.ifError })
    t.after(() => journal.close())
    return journal
  }
  const [old] = await open().read({ limit: 10, waitMs: 0 })
  const start = (journal: Journal) => {
    const agent = createAgentFiles({ layout: places, journal, onUnexpected: assert.ifError })
    t.after(() => agent.stop())
    return agent
  }
  /** The next process, after it has seen to what the one before has left. */
  const restart = async () => {
    const journal = open()
    const agent = start(journal)
    await agent.settle()
    await agent.start()
    const facts = (await journal.read({ limit: 10, waitMs: 0 })).filter(({ id }) => id !== old?.id)
    assert.deepEqual(journal.unsettled(), [])
    return { agent, facts }
  }
  return { places, folders: places.server(serverId), trashId, open, start, restart }
}

/** What is on the disk when the process dies in the middle, made by hand. */
export async function interrupted(
  t: TestContext,
  work: (agent: FilesOfAgent) => Promise<unknown>,
  disk: (at: string) => void,
) {
  const { folders, open, start, restart } = await prepared(t)
  const { promise: death, resolve: died } = Promise.withResolvers<void>()
  void work(start(dying(open(), 'after the intent', died))).catch(() => {})
  await death
  disk(folders.files)
  return { ...(await restart()), folders }
}
