// CVE-2025-69199 (floods of streams), sign-in limiters that lock others out, CVE-2024-49762 (secrets in logs) and
// CVE-2026-52857 (JSON without bound), by a tenant and by a stranger at its address.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { killLeftovers } from '../support/process.ts'
import { attack } from './support/attack.ts'
import { openScene, type Tenant } from './support/scene.ts'
import { sized } from './support/size.ts'

after(killLeftovers)

/** Beyond the connections that one address may have, a guess would get no answer at all. */
const GUESSES_AT_ONCE = 100

const times = <T>(count: number, work: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, index) => work(index)))

async function floodStreams({ url, token, serverId }: Tenant): Promise<number[]> {
  const over = new AbortController()
  const replies = await times(sized(80, 200), () => {
    const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' }
    return fetch(`${url}/v1/game/servers/${serverId}/activity`, { headers, signal: over.signal })
  })
  over.abort()
  // Only here: the body of a reply that nobody refers to any more is cancelled, and its stream makes room for another.
  return replies.map(({ status }) => status)
}

const nested = (depth: number) => `{"name":${'['.repeat(depth)}${']'.repeat(depth)}}`
const wide = (count: number) => `{${Array.from({ length: count }, (_, index) => `"k${index}":1`).join(',')}}`

test('streams, sign-ins and JSON in floods are refused, and nothing secret is logged', async (t) => {
  const scene = await openScene(t, { settings: { GAMEKEEPER_LOG_LEVEL: 'trace' } })
  const { attacker, keeper, victim } = scene
  await attack(scene, async () => {
    const statuses = await floodStreams(attacker)
    assert.equal(statuses.filter((status) => status === 200).length, 50)
    assert.deepEqual([...new Set(statuses)].sort(), [200, 429])

    const guess = async (index: number) => {
      const token = `gk_guess_${String(index).padStart(64, '0')}`
      return (await attacker.call('GET', '/servers', { token })).status
    }
    const guesses: number[] = []
    while (guesses.length < sized(GUESSES_AT_ONCE, 1000))
      guesses.push(...(await times(GUESSES_AT_ONCE, (index) => guess(guesses.length + index))))
    assert.deepEqual([...new Set(guesses)].sort(), [401, 429])
    // A good token from the same address is let in all the same.
    assert.equal((await attacker.call('GET', '/servers')).status, 200)

    const bodies = [nested(100_000), nested(500_000), wide(80_000), `"${'x'.repeat(1_000_000)}"`, 'x'.repeat(1_100_000)]
    for (const body of bodies) {
      const headers = { 'content-type': 'application/json' }
      const replies = await times(sized(4, 16), () =>
        attacker.call('POST', `/files/${attacker.serverId}/folder`, { body, headers }),
      )
      // Large bodies of one token are read at a pace, too.
      for (const { status, text } of replies) assert.ok([400, 413, 429].includes(status), `${status} ${text}`)
    }
    const upload = (await attacker.call('GET', `/files/${attacker.serverId}/upload`)).body.url as string
    await fetch(upload, { method: 'POST', body: 'no form' })
    await attacker.call('GET', `/servers?token=${attacker.token}`, { token: null })
    const link = upload.split('/').at(-1) ?? ''
    for (const secret of [attacker.token, victim.token, keeper.token, link])
      assert.ok(!keeper.output().includes(secret), 'a secret was logged')
  })
})
