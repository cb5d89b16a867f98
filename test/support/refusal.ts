// A database that refuses the entries of the activity, as one does that is full or read-only.
import { sql } from 'kysely'
import { withDatabase } from './database.ts'
import type { TestService } from './service.ts'

type Database = Pick<TestService, 'dataDir' | 'databaseUrl'>

export async function refuseEntries(database: Database): Promise<void> {
  const statements = database.databaseUrl
    ? [
        `create function refuse() returns trigger as $$ begin raise exception 'refused'; end $$ language plpgsql`,
        'create trigger refuse before insert on activity for each row execute function refuse()',
      ]
    : [`create trigger refuse before insert on activity begin select raise(abort, 'refused'); end`]
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
