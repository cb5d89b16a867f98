import assert from 'node:assert/strict'
import { test } from 'node:test'
import { onlyColours, plainText, terminalText } from './terminal-text.ts'

test('colours are kept, and nothing else that a terminal would act on', () => {
  assert.equal(onlyColours('\u001b[31;1mred\u001b[0m'), '\u001b[31;1mred\u001b[0m')
  assert.equal(onlyColours('a\u001b[2Jb\u001b[1;1Hc\u001b[?1049hd'), 'abcd')
  assert.equal(onlyColours('a\u001b]0;title\u0007b\u001b]52;c;c3RvbGVu\u001b\\c'), 'abc')
  assert.equal(onlyColours('a\u001b]8;;http://evil.example\u0007link\u001b]8;;\u0007'), 'alink')
  assert.equal(onlyColours('a\u009b2Jb\u0007\rc\nd\te'), 'a2Jbcd\te')
  assert.equal(onlyColours('\u001bP$qm\u001b\\x\u001bc\u001b'), 'x')
  for (const hidden of ['8', '0;8', '31;8', '08', '38;5;8;8'])
    assert.equal(onlyColours(`\u001b[${hidden}mx`), 'x', hidden)
  for (const shown of ['38;5;8', '48;2;8;8;8', '28', '38:2::8:8:8'])
    assert.notEqual(onlyColours(`\u001b[${shown}mx`), 'x', shown)
  assert.equal(plainText('\u001b[31mred\u001b[0m'), 'red')
})

test('what was sent to the game, and what happened to it, can be told from what it wrote', () => {
  const line = { line: 1, at: '2026-11-15T00:00:00.000Z', text: 'say hi' }
  const text = (source: 'stdout' | 'command' | 'gamekeeper') => terminalText({ ...line, source }, () => '00:00:00')
  assert.match(plainText(text('command')), /^00:00:00 › say hi$/)
  assert.equal(plainText(text('stdout')), '00:00:00 say hi')
  assert.notEqual(text('gamekeeper'), text('stdout'))
  // Whatever it writes: all that is before its text is another.
  for (const source of ['command', 'gamekeeper'] as const) {
    const [genuine = ''] = text(source).split('00:00:00')
    const forged = terminalText({ ...line, source: 'stdout', text: text(source) }, () => '00:00:00')
    assert.ok(!forged.startsWith(genuine), source)
  }
})
