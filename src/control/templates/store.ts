import { countRows } from '../db/count-rows.ts'
import type { Db, TemplateRow, Trx } from '../db/tables.ts'

export type TemplateSummaryRow = Omit<TemplateRow, 'content' | 'srv' | 'default_port'>

export function findTemplate(db: Db, id: string): Promise<TemplateRow | undefined> {
  return db.selectFrom('templates').selectAll().where('id', '=', id).executeTakeFirst()
}

/** Until the transaction ends, nobody else deletes it, replaces it or gives it to a server. */
export async function lockTemplate(trx: Trx, id: string): Promise<TemplateRow | undefined> {
  return trx
    .updateTable('templates')
    .set((set) => ({ created_at: set.ref('created_at') }))
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()
}

/** Answers false if there is one of this id already. */
export async function insertTemplateIfAbsent(trx: Trx, row: TemplateRow): Promise<boolean> {
  const insert = trx
    .insertInto('templates')
    .values(row)
    .onConflict((conflict) => conflict.column('id').doNothing())
  return ((await insert.executeTakeFirst()).numInsertedOrUpdatedRows ?? 0n) > 0n
}

/** Answers false if there is none of this id. */
export async function updateTemplate(trx: Trx, row: TemplateRow): Promise<boolean> {
  const update = trx.updateTable('templates').set(row).where('id', '=', row.id)
  return (await update.executeTakeFirst()).numUpdatedRows > 0n
}

export async function removeTemplate(trx: Trx, id: string): Promise<void> {
  await trx.deleteFrom('templates').where('id', '=', id).execute()
}

export const countTemplates = (db: Db): Promise<number> => countRows(db.selectFrom('templates'))

export async function listTemplateIds(db: Db): Promise<string[]> {
  return (await db.selectFrom('templates').select('id').execute()).map((row) => row.id)
}

export async function summariesOf(db: Db, ids: readonly string[]): Promise<TemplateSummaryRow[]> {
  if (ids.length === 0) return []
  return db
    .selectFrom('templates')
    .select(['id', 'name', 'description', 'runtimes', 'created_at'])
    .where('id', 'in', [...ids])
    .execute()
}

/** Servers that use it, also those that can be brought back. The template is locked: no server comes to use it meanwhile. */
export const countUses = (trx: Trx, templateId: string): Promise<number> =>
  countRows(trx.selectFrom('servers').where('game', '=', templateId))
