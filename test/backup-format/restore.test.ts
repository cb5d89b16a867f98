// A reader in another language, written from docs/backup-format.md alone, restores what we stored.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import {
  closeSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { missingTools } from '../../scripts/tools.ts'
import { assertSameTree, snapshot, temporaryFolder, testAgent } from '../../src/agent/backups/backups.testing.ts'
import { changeSectors } from '../faults/backups-tree.ts'

const READER = fileURLToPath(new URL('./restore.py', import.meta.url))
const PYTHON = '/usr/bin/python3'
const withoutPython = missingTools().includes('python') && 'needs python3 and zstd'
const withoutAes =
  spawnSync(PYTHON, ['-c', 'import cryptography']).status !== 0 && "needs Python's cryptography package"

/** As a game keeps what it has compressed: in sectors, filled up with zeros. */
function sectors(count: number): Buffer {
  const pieces = Array.from({ length: count }, (_, index) => [randomBytes(4096 - index * 60), Buffer.alloc(index * 60)])
  return Buffer.concat(pieces.flat()).subarray(0, count * 4096 - 1000)
}

function fill(root: string): void {
  mkdirSync(join(root, 'world/empty'), { recursive: true })
  writeFileSync(join(root, 'world/region'), randomBytes(1_500_003))
  writeFileSync(join(root, 'world/sectors'), sectors(61))
  writeFileSync(join(root, 'world/text'), 'text '.repeat(200_000))
  for (let index = 0; index < 40; index++) writeFileSync(join(root, `small ${index}`), `${index} `.repeat(index * 7))
  const sparse = openSync(join(root, 'sparse'), 'w')
  writeSync(sparse, 'middle', 5_000_000)
  closeSync(sparse)
  truncateSync(join(root, 'sparse'), 9_000_001)
  symlinkSync('world/text', join(root, 'link'))
  linkSync(join(root, 'world/text'), join(root, 'zz hard link'))
  writeFileSync(Buffer.from([...Buffer.from(`${root}/`), 0xff, 0x41]), 'odd')
}

/** Also a sector that surely lies in a whole block: only those are patched, and by chance alone all may lie in the last one. */
function changeRegion(path: string): void {
  changeSectors(path, randomInt)
  const file = openSync(path, 'r+')
  writeSync(file, randomBytes(100), 0, 100, 70_000)
  closeSync(file)
}

for (const [label, key, blockHash, version, reason] of [
  ['in the clear', null, 'blake2b-256', 2, withoutPython],
  ['in the clear', null, 'sha-256', 1, withoutPython],
  ['encrypted', randomBytes(32), 'blake2b-256', 1, withoutPython || withoutAes],
  ['encrypted', randomBytes(32), 'sha-256', 2, withoutPython || withoutAes],
  ['in the clear', null, 'sha-256', 3, withoutPython],
  ['encrypted', randomBytes(32), 'blake2b-256', 3, withoutPython || withoutAes],
] as const) {
  it(`a store of format ${version} ${label}, its blocks named by ${blockHash}, is read by a program that knows only the document`, {
    skip: reason,
  }, async (t) => {
    const agent = await testAgent(t, { key, blockHash, ...(version === 1 ? { manifestSizes: undefined } : {}) })
    const root = agent.filesOf('srv_a')
    fill(root)
    const before = snapshot(root)
    const first = await agent.create('srv_a')
    writeFileSync(join(root, 'small 7'), 'changed')
    if (version === 3) changeRegion(join(root, 'world/region'))
    const second = await agent.create('srv_a')
    const more = key ? [key.toString('hex')] : []
    for (const [{ backupId }, tree] of [
      [first, before],
      [second, snapshot(root)],
    ] as const) {
      const target = temporaryFolder(t)
      execFileSync(PYTHON, [READER, agent.storeDir, 'srv_a', backupId, target, ...more])
      assertSameTree(snapshot(target), tree)
      assert.ok(Object.keys(tree).length > 45)
    }
    assert.equal(JSON.parse(readFileSync(join(agent.storeDir, 'format'), 'utf8')).version, version)
  })
}
