import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withDatabase } from '../../../test/support/database.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { startTestService } from '../../../test/support/service.ts'
import { readConfig } from '../config.ts'
import { createChanges } from '../db/row-changes.ts'
import { createCursors } from '../http/paging.ts'
import { keyFor, loadSecret } from '../secrets.ts'
import { hashEntry, sealHead } from './chain.ts'
import { createActivity } from './service.ts'

const OLD = 40_000

onBothEngines('retention', (engine) => {
  test('entries past it are purged in batches, however many, and the chain that is left is whole', async () => {
    await using service = await startTestService({ engine })
    const { id } = await service.createServer()
    await service.call('PATCH', `/servers/${id}`, { body: { name: 'kept' } })
    const config = readConfig({ GAMEKEEPER_DATA_DIR: service.dataDir })
    const secret = loadSecret(service.dataDir, config.secret)
    const key = keyFor(secret, 'activity')
    await withDatabase(service, async (db) => {
      await rewriteAsOld(db, key, id)
      const clock = { now: () => Date.now() }
      const activity = createActivity({
        db,
        key,
        cursors: createCursors(keyFor(secret, 'cursors')),
        changes: createChanges(),
        clock,
      })
      const verifying = service.call('GET', `/servers/${id}/activity/verify`)
      assert.equal(await activity.purge(Date.now() - 86_400_000), OLD)
      assert.equal((await verifying).body.intact, true, 'a purge under way is not taken for tampering')
      assert.equal(await activity.purge(Date.now() - 86_400_000), 0)
    })
    const left = (await service.call('GET', `/servers/${id}/activity`)).body.data
    assert.deepEqual(
      left.map((entry: { event: string }) => entry.event),
      ['server.changed', 'server.created'],
    )
    const verified = (await service.call('GET', '/activity/verify')).body
    assert.equal(verified.intact, true)
    const [purge] = (await service.call('GET', '/activity?event=activity.purged')).body.data
    assert.equal(purge.properties.entries, OLD)
    assert.equal(purge.actor.type, 'system')
  })
})

/** Puts so many old entries before those of a chain, hashed as the service would have. */
async function rewriteAsOld(
  db: Parameters<Parameters<typeof withDatabase>[1]>[0],
  key: Buffer,
  chain: string,
): Promise<void> {
  const kept = await db.selectFrom('activity').selectAll().where('chain', '=', chain).orderBy('seq').execute()
  const [model] = kept
  assert.ok(model)
  await db.deleteFrom('activity').where('chain', '=', chain).execute()
  const old = Array.from({ length: OLD }, (_, i) => ({ ...model, id: `act_old${i}`, at: 1_600_000_000_000 + i }))
  let hash = ''
  const rows = [...old, ...kept].map((row, i) => {
    const numbered = { ...row, seq: i + 1 }
    hash = hashEntry(key, hash, numbered)
    return { ...numbered, hash }
  })
  for (let i = 0; i < rows.length; i += 1000)
    await db
      .insertInto('activity')
      .values(rows.slice(i, i + 1000))
      .execute()
  const head = { chain, seq: rows.length, hash, at: rows.at(-1)?.at ?? 0, purged_seq: 0, purged_hash: '' }
  await db
    .updateTable('activity_heads')
    .set({ ...head, seal: sealHead(key, head) })
    .where('chain', '=', chain)
    .execute()
}
