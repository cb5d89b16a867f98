import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { maskArguments } from './masks.ts'

test('what is within a folder that is hidden is hidden with it, and nothing twice', (t) => {
  const top = realpathSync(mkdtempSync(join(tmpdir(), 'gamekeeper-masks-')))
  t.after(() => rmSync(top, { recursive: true }))
  const [data, other] = [join(top, 'data'), join(top, 'other.key')]
  mkdirSync(join(data, 'tls'), { recursive: true })
  writeFileSync(join(data, 'tls/own.key'), '')
  writeFileSync(other, '')
  assert.deepEqual(maskArguments([top], [data, join(data, 'tls/own.key'), other, data, join(top, 'missing')]), [
    ...['--perms', '0000', '--tmpfs', data, '--remount-ro', data],
    ...['--ro-bind', '/dev/null', other],
  ])
})
