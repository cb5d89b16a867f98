import { randomBytes } from 'node:crypto'
import type { Db } from './tables.ts'

const KEY = 'id'

/** The name of this installation, for telling what it made elsewhere from what others made. */
export async function instanceIdOf(db: Db): Promise<string> {
  const value = randomBytes(8).toString('hex')
  await db
    .insertInto('instance')
    .values({ key: KEY, value })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  return (await db.selectFrom('instance').select('value').where('key', '=', KEY).executeTakeFirstOrThrow()).value
}
