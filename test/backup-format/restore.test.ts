// A reader in another language, written from docs/backup-format.md alone, restores what we stored.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, linkSync, mkdirSync, openSync, symlinkSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { missingTools } from '../../scripts/tools.ts'
import { assertSameTree, snapshot, temporaryFolder, testAgent } from '../../src/agent/backups/backups.testing.ts'

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
  writeFileSync(join(root, 'world/region'), randomBytes(1_000_003))
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

for (const [label, key, blockHash, reason] of [
  ['in the clear', null, 'blake2b-256', withoutPython],
  ['in the clear', null, 'sha-256', withoutPython],
  ['encrypted', randomBytes(32), 'blake2b-256', withoutPython || withoutAes],
  ['encrypted', randomBytes(32), 'sha-256', withoutPython || withoutAes],
] as const) {
  it(`a store ${label}, its blocks named by ${blockHash}, is read by a program that knows only the document`, {
    skip: reason,
  }, async (t) => {
    const agent = await testAgent(t, { key, blockHash })
    const root = agent.filesOf('srv_a')
    fill(root)
    await agent.create('srv_a')
    writeFileSync(join(root, 'small 7'), 'changed')
    const { backupId } = await agent.create('srv_a')
    const target = temporaryFolder(t)
    const more = key ? [key.toString('hex')] : []
    execFileSync(PYTHON, [READER, agent.storeDir, 'srv_a', backupId, target, ...more])
    assertSameTree(snapshot(target), snapshot(root))
    assert.ok(Object.keys(snapshot(target)).length > 45)
  })
}
