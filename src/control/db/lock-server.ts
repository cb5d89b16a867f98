import type { Trx } from './tables.ts'

/** Makes concurrent requests for one server take turns, on either engine, until the transaction ends. */
export async function lockServer(trx: Trx, serverId: string): Promise<void> {
  await trx
    .updateTable('servers')
    .set((set) => ({ updated_at: set.ref('updated_at') }))
    .where('id', '=', serverId)
    .execute()
}
