import assert from 'node:assert/strict'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { temporaryFolder } from '../backups.testing.ts'
import { createFileMaker, MADE, newFilesOf } from './new-files.ts'

const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0]

it('makes files with their content, mode and time, whatever the umask, and says what they are', (t) => {
  const folder = temporaryFolder(t)
  const before = process.umask(0o077)
  t.after(() => process.umask(before))
  const modes = [0o644, 0o600, 0o444, 0o777]
  const wanted = modes.map((mode, index) => {
    return {
      address: join(folder, String(index)),
      number: 10 + index,
      mode,
      uid,
      gid,
      mtimeNs: 1_500_000_000_123_000_000n,
    }
  })
  const makeFile = createFileMaker(newFilesOf(wanted))
  const made = new Float64Array(modes.length * MADE.fields)
  // What a job that was given up has left is replaced.
  writeFileSync(join(folder, '2'), 'a longer content than the new one', { mode: 0o444 })
  for (const [index, mode] of modes.entries()) {
    makeFile(index, Buffer.from(`content ${index}`), made, index)
    const stats = statSync(join(folder, String(index)))
    assert.equal(readFileSync(join(folder, String(index)), 'utf8'), `content ${index}`)
    assert.equal(stats.mode & 0o7777, mode)
    assert.equal(Math.floor(stats.mtimeMs), 1_500_000_000_123)
    const row = made.subarray(index * MADE.fields, (index + 1) * MADE.fields)
    assert.deepEqual([...row], [10 + index, stats.ino, stats.size, stats.mtimeMs])
  }
})
