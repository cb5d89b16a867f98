// A process killed at any instant leaves whole files only, loses none, and leaves nothing lying about once the next one
// has started. GAMEKEEPER_CRASH_ROUNDS sets how often.
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { layout } from '../layout.ts'
import { isWhole, KEPT, serverId, wholeContent } from './crash.testing.ts'
import { createAgentFiles } from './index.ts'
import { fillTree, makeTree } from './trees.testing.ts'

const ROUNDS = Number(process.env.GAMEKEEPER_CRASH_ROUNDS ?? 10)

function contentsOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'record.json' && !entry.name.endsWith('.tar'))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
}

/** Keeps the rounds alike: what is only a copy or a version would otherwise grow with every one of them. */
function dropGrowth(files: string, trash: string): void {
  for (const name of readdirSync(files)) if (name !== 'keep') rmSync(join(files, name), { recursive: true })
  for (const batch of readdirSync(trash)) {
    const record = join(trash, batch, 'record.json')
    if (!existsSync(record) || !readFileSync(record, 'utf8').includes('"/keep/'))
      rmSync(join(trash, batch), { recursive: true })
  }
}

test('A crash leaves an item either in its place or in the trash with its record.', async (t) => {
  t.diagnostic(`killed ${ROUNDS} times`)
  const dataDir = makeTree(t)
  const places = layout(dataDir)
  const { files, trash, staging } = places.server(serverId)
  const kept = Array.from({ length: KEPT }, (_, i) => wholeContent(`kept-${i}`, 1000 + i))
  fillTree(files, Object.fromEntries(kept.map((content, i) => [`keep/${i}`, content])))
  for (let round = 0; round < ROUNDS; round++) {
    const child = fork(join(import.meta.dirname, 'crash.testing.ts'), ['work', dataDir])
    await once(child, 'message')
    await delay(20 + Math.random() * 300)
    child.kill('SIGKILL')
    await once(child, 'exit')

    const agent = createAgentFiles({ layout: places, onUnexpected: assert.ifError })
    await agent.start()
    await agent.sweep()
    assert.deepEqual(readdirSync(staging), [], 'temporary files are left')
    const present = contentsOf(files)
    const trashed = contentsOf(trash)
    for (const content of present) assert.ok(isWhole(content), `half a file: ${content.slice(0, 40)}`)
    const { items } = await agent.listTrash({ serverId, limit: 100_000 })
    for (const content of kept) assert.ok(present.includes(content) || trashed.includes(content), 'a file was lost')
    const slots = readdirSync(trash).flatMap((batch) =>
      readdirSync(join(trash, batch)).filter((name) => name !== 'record.json'),
    )
    assert.equal(items.length, slots.length, 'something in the trash cannot be brought back')
    assert.equal((await agent.usage({ serverId })).reservedBytes, 0)
    t.diagnostic(`${present.length} files, ${items.length} items in the trash`)
    await agent.stop()
    dropGrowth(files, trash)
  }
})
