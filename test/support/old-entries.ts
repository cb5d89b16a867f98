// Entries as versions without a bound have written them: into a chain as it lies in the database, with the hashes it needs.
import { hashEntry, sealHead } from '../../src/control/activity/chain.ts'
import { keyFor, loadSecret } from '../../src/control/secrets.ts'
import { newId } from '../../src/kit/ids.ts'
import { withDatabase } from './database.ts'

/** `properties` makes those of the nth. Answers the ids of the entries, oldest first. */
export async function appendOldEntries(
  service: { dataDir: string; databaseUrl: string | null },
  chain: string,
  count: number,
  properties: (index: number) => object,
): Promise<string[]> {
  const key = keyFor(loadSecret(service.dataDir, null), 'activity')
  return withDatabase(service, (db) =>
    db.transaction().execute(async (trx) => {
      const head = await trx
        .selectFrom('activity_heads')
        .selectAll()
        .where('chain', '=', chain)
        .executeTakeFirstOrThrow()
      const model = await trx
        .selectFrom('activity')
        .selectAll()
        .where('chain', '=', chain)
        .limit(1)
        .executeTakeFirstOrThrow()
      const ids: string[] = []
      for (let index = 0; index < count; index++) {
        head.seq++
        const id = newId('act', head.at)
        const row = { ...model, seq: head.seq, id, event: 'job.started', properties: JSON.stringify(properties(index)) }
        head.hash = hashEntry(key, head.hash, { ...row, at: head.at })
        await trx
          .insertInto('activity')
          .values({ ...row, at: head.at, hash: head.hash })
          .execute()
        ids.push(id)
      }
      await trx
        .updateTable('activity_heads')
        .set({ ...head, seal: sealHead(key, head) })
        .where('chain', '=', chain)
        .execute()
      return ids
    }),
  )
}
