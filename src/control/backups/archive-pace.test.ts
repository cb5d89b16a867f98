// Each archive of a backup is a compressor with its memory, and a part of one is made again from its beginning.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWorld } from '../../../test/support/backups.ts'
import { startTestService } from '../../../test/support/service.ts'
import { ARCHIVES_BEGUN } from '../../contract/fixed-limits.ts'

test('archives of one server begin at a pace, and those that would wait for too long are refused', async (t) => {
  await using service = await startTestService()
  const world = createWorld(service)
  const [busy, other] = [await world.server({ a: 'a' }), await world.server({ a: 'a' })]
  const backups = { [busy]: (await world.backup(busy)).id, [other]: (await world.backup(other)).id }
  const leaving = new AbortController()
  const headers = { authorization: `Bearer ${service.adminToken}`, range: 'bytes=1-2' }
  const part = (server: string, signal?: AbortSignal) =>
    fetch(`${service.url}/v1/game/backups/${server}/${backups[server]}/download`, { headers, signal: signal ?? null })
  const { perSecond, burst, waitMs } = ARCHIVES_BEGUN
  // However long a busy machine takes to answer, they all come at once.
  const now = performance.now()
  t.mock.method(performance, 'now', () => now)
  const begun = Array.from({ length: burst + (perSecond * waitMs) / 1000 + 10 }, () => part(busy, leaving.signal))
  const refused = await Promise.any(
    begun.map(async (reply) => {
      const { status, headers: said } = await reply
      assert.equal(status, 429)
      return Number(said.get('retry-after'))
    }),
  )
  assert.ok(refused >= 1)
  assert.equal((await part(other)).status, 206, 'another server is not touched by it')
  t.mock.restoreAll()
  leaving.abort()
  await Promise.allSettled(begun)
})
