import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { pino } from 'pino'
import { BINARY } from '../../test/support/terminal.ts'
import { createLogLines } from './log-lines.ts'
import { createPaint } from './text.ts'

function logged(work: (log: ReturnType<typeof pino>) => void, isColored = false): string {
  const written: string[] = []
  work(
    pino(
      {},
      createLogLines((text) => void written.push(text), createPaint(isColored)),
    ),
  )
  return written.join('')
}

test('an entry is a line with the time, the level, the message and its fields', () => {
  const text = logged((log) => log.warn({ serverId: 'srv_1', migrations: ['a', 'b'], note: 'two words' }, 'look here'))
  assert.match(
    text,
    /^\d\d:\d\d:\d\d {2}WARN {3}look here {2}serverId=srv_1 {2}migrations=\["a","b"\] {2}note="two words"\n$/,
  )
  assert.ok(logged((log) => log.error('red'), true).includes('\u001b[31mERROR\u001b[39m'))
})

test('an error comes with its stack, and nothing in it can steer the terminal', () => {
  const text = logged((log) => log.error({ err: new Error('bad \u001b[2J name\rINFO'), path: '/a\u0007' }, 'x\ny'))
  assert.match(
    text,
    /^\S+ {2}ERROR {2}x\\u000ay {2}path=\/a\\u0007\n {4}Error: bad \\u001b\[2J name\\u000dINFO\n {4} {4}at /,
  )
})

test('on a terminal the log is for people and the start stands out from it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-log-'))
  const env = { ...process.env, GAMEKEEPER_PORT: '0', GAMEKEEPER_DATA_DIR: folder, TERM: 'xterm', NO_COLOR: '' }
  // `script` gives it a terminal, and hands on how it ended; a shell that stayed would die of the Ctrl-C.
  const command = `exec "${process.execPath}" "${BINARY}" serve`
  const child = spawn('script', ['-qefc', command, '/dev/null'], { env: { ...env, SHELL: '/bin/sh' } })
  let text = ''
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    text += chunk
    // The end of the token's line and the empty one after it; then Ctrl-C.
    if (child.stdin.writable && /gk_\w+\r\n\r\n/.test(text)) child.stdin.end('\u0003')
  }
  if (child.exitCode === null) await once(child, 'exit')
  const plain = stripVTControlCharacters(text).replaceAll('\r', '')
  assert.match(plain, /^\d\d:\d\d:\d\d {2}INFO {3}migrated {2}migrations=\[/m)
  assert.match(
    plain,
    /\n\nGamekeeper listens on http:\S+\n {2}API reference {2}http:\S+\/docs\n\nThis is the admin token\./,
  )
  assert.ok(text.includes('\u001b[1mGamekeeper listens on'))
  assert.equal(child.exitCode, 0)
  rmSync(folder, { recursive: true })
})
