// What is in the way of a restore goes to the trash only once that is noted: where it cannot be, nothing moves.
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openChild, openRoot } from '../../files/sandbox/directory.ts'
import { startServer, treeOf } from '../../files/server.testing.ts'
import type { TrashRecord } from '../../files/trash/trash-records.ts'
import { openDescriptors } from '../../files/trees.testing.ts'
import { createRestoreGate, NEWER_FILE } from '../../restore-state.ts'
import { createWay } from './restore-conflicts.ts'

test('a batch of the trash that cannot be noted is closed, and can be emptied', async (t) => {
  const { server, at, folders } = await startServer(t, { a: 'newer' })
  const folder = join(folders.staging, 'restore-job')
  mkdirSync(folder)
  // Cannot be opened as a file, whatever the disk and the descriptors.
  mkdirSync(join(folder, NEWER_FILE))
  using staging = openRoot(folder)
  using trash = openRoot(folders.trash)
  const target = {
    sandbox: server.files,
    prepareTrash: (items: TrashRecord['items']) => server.trash.prepare('replaced', items),
    // One that holds nothing back from being emptied.
    gate: { ...createRestoreGate(folders.staging), hold() {} },
  }
  const way = createWay(target, staging, (batch) => openChild(trash, batch), 'forward')
  const before = openDescriptors()
  for (let attempt = 0; attempt < 3; attempt++) {
    await assert.rejects(way.clear(['a'], { allowsDirectory: false }), { code: 'EISDIR' })
    assert.deepEqual(openDescriptors(), before)
  }
  assert.equal(readFileSync(at('a'), 'utf8'), 'newer')
  await server.trash.emptyAll()
  assert.deepEqual(treeOf(folders.trash), [])

  rmdirSync(join(folder, NEWER_FILE))
  await way.clear(['a'], { allowsDirectory: false })
  assert.deepEqual([treeOf(folders.files), openDescriptors()], [[], before])
})
