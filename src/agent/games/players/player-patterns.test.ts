import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CONSOLE_LINE_MAX_BYTES, PLAYER_NAME_MAX_CHARS } from '../../../contract/fixed-limits.ts'
import { SHIPPED_TEMPLATES } from '../templates/index.ts'
import { createPlayerPatterns } from './player-patterns.ts'

const find = (joins: string[], line: string) => createPlayerPatterns({ joins, leaves: [] })?.match(Buffer.from(line))
const nameIn = (pattern: string, line: string) => find([pattern], line)?.player

test('a name is found between the pieces of a pattern, through colours, and has no spaces', () => {
  const minecraft = ']: {player} joined the game'
  assert.equal(nameIn(minecraft, '[12:00:00] [Server thread/INFO]: Notch joined the game'), 'Notch')
  assert.equal(nameIn(minecraft, '[12:00] [INFO]: \u001b[33mNotch\u001b[0m joined the game'), 'Notch')
  assert.equal(nameIn(minecraft, '[12:00] [INFO]: <Bob> I said Notch joined the game'), undefined, 'a chat')
  assert.equal(nameIn('{player} has joined.', 'Bob has joined.'), 'Bob')
  assert.equal(nameIn('{player} has joined.', '12:00 Bob has joined.'), 'Bob')
  assert.equal(nameIn('Player connected: {player},', 'x Player connected: Jörg, xuid: 1'), 'Jörg')
  assert.equal(nameIn(']: {player} [*] joins game.', '[Server]: anna [127.0.0.1] joins game. List: '), 'anna')
  assert.equal(nameIn(']: {player} [*] joins game.', '[Server]: anna [127.0.0.1] leaves game.'), undefined)
  assert.equal(nameIn('join {player}', 'a join anna'), 'anna')
  assert.equal(nameIn('^{player} joined$', 'anna joined'), 'anna')
  assert.equal(nameIn('^{player} joined$', '<bob> anna joined'), undefined)
  assert.equal(nameIn('^{player} joined$', 'anna joined us'), undefined)
  assert.equal(nameIn('{player}', 'anna'), undefined, 'what matches everything means nothing')
  assert.equal(nameIn('no name joined', 'no name joined'), undefined)
})

test('a line or a pattern that was made to take for ever does not, and a name is cut', { timeout: 120_000 }, () => {
  const long = (text: string) => text.repeat(CONSOLE_LINE_MAX_BYTES / text.length)
  for (const pattern of ['a{player}a', ' {player} ', `${'*a'.repeat(100)}{player}${'a*'.repeat(100)}`, 'x{player}a a'])
    for (const line of [long('a'), long(' '), long('a '), long('x a')])
      for (let round = 0; round < 20; round++) nameIn(pattern, line)
  assert.equal(nameIn('join {player}', `join ${'é'.repeat(1000)}`), 'é'.repeat(PLAYER_NAME_MAX_CHARS))
  assert.equal(nameIn('join {player}', 'join a\u0007b\u0000c'), 'abc')
  assert.equal(nameIn('join {player}', 'join \u0007'), undefined)
})

test('every shipped pattern of joins and leaves has a name in it', () => {
  for (const { id, joins = [], leaves = [] } of SHIPPED_TEMPLATES)
    for (const pattern of [...joins, ...leaves]) assert.ok(find([pattern], pattern.replace('{player}', 'anna')), id)
})
