import type { SelectQueryBuilder } from 'kysely'

/** How many rows a query without columns finds. PostgreSQL counts in 64 bits, which its driver gives as text. */
export async function countRows<DB, Table extends keyof DB>(
  query: SelectQueryBuilder<DB, Table, object>,
): Promise<number> {
  const counted = query.select((of) => of.fn.countAll<number>().as('count'))
  const { count } = (await counted.executeTakeFirstOrThrow()) as { count: number | string }
  return Number(count)
}
