// The database behind a test service, opened from the side: to look at what is at rest, and to tamper with it.
import { openDatabase } from '../../src/control/db/database.ts'
import type { Db } from '../../src/control/db/tables.ts'
import type { TestService } from './service.ts'

export async function withDatabase<T>(
  service: Pick<TestService, 'dataDir' | 'databaseUrl'>,
  work: (db: Db) => Promise<T>,
): Promise<T> {
  const { db, close } = openDatabase({ dataDir: service.dataDir, url: service.databaseUrl, onBroken: () => {} })
  try {
    return await work(db)
  } finally {
    await close()
  }
}
