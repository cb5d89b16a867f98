// What a game says of its own end, and what somebody says in its chat.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { needs } from '../../../test/support/needs.ts'
import { until } from '../../../test/support/until.ts'
import { createLineMatcher } from './console/line-pattern.ts'
import { createManualTimers, openGames } from './games.testing.ts'
import { createStopWord } from './supervisor/stop-word.ts'

const S = 'srv_castle'

suite('the word to stop', needs('bubblewrap'), () => {
  test('a chat from long before does not turn a crash into a stop', async () => {
    await using harness = await openGames({ timers: createManualTimers() })
    await harness.create(S, 'plain')
    const reasonAfter = async (lines: number) => {
      const script = `echo "Done ("; echo "<bob> Stopping the server"; seq ${lines}; exit 7`
      await harness.power(S, 'start', { argv: ['/bin/sh', '-c', script] })
      await until(async () => !harness.games.isRunning(S))
      return (await harness.games.read({ serverId: S })).power.exit?.reason
    }
    assert.equal(await reasonAfter(10), 'in_game', 'a game says more while it saves')
    assert.equal(await reasonAfter(300), 'crashed')
  })
})

test('what was said minutes ago does not count, however little was said since', () => {
  let now = 0
  const word = createStopWord(createLineMatcher(['Stopping']), () => now)
  assert.equal(word.isLast(), false)
  word.hear([Buffer.from('Stopping'), Buffer.from('Saving')])
  now += 60_000
  assert.equal(word.isLast(), true)
  now += 61_000
  assert.equal(word.isLast(), false)
})
