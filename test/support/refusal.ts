// A database that refuses entries of the activity, as one does that is full or read-only.
import { sql } from 'kysely'
import { withDatabase } from './database.ts'
import type { TestService } from './service.ts'

type Database = Pick<TestService, 'dataDir' | 'databaseUrl'>

export const refuseEntries = (database: Database) => refuse(database, 'true')

/** Only those of one event. */
export const refuseEntriesOf = (database: Database, event: string) => refuse(database, `new.event = '${event}'`)

async function refuse(database: Database, condition: string): Promise<void> {
  const statements = database.databaseUrl
    ? [
        `create function refuse() returns trigger as $$ begin raise exception 'refused'; end $$ language plpgsql`,
        `create trigger refuse before insert on activity for each row when (${condition}) execute function refuse()`,
      ]
    : [`create trigger refuse before insert on activity when ${condition} begin select raise(abort, 'refused'); end`]
  await run(database, statements)
}

export async function takeEntriesAgain(database: Database): Promise<void> {
  const statements = database.databaseUrl
    ? ['drop trigger refuse on activity', 'drop function refuse()']
    : ['drop trigger refuse']
  await run(database, statements)
}

const run = (database: Database, statements: string[]) =>
  withDatabase(database, async (db) => {
    for (const statement of statements) await sql.raw(statement).execute(db)
  })
