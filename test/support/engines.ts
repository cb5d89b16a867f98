// Every test that touches the database runs on both engines, each on a database of its own.
import { randomBytes } from 'node:crypto'
import { describe } from 'node:test'
import pg from 'pg'
import type { Engine } from '../../src/control/db/database.ts'

const POSTGRES = process.env.GAMEKEEPER_TEST_POSTGRES

export const NEEDS_POSTGRES = {
  skip: POSTGRES || process.env.CI ? false : 'no PostgreSQL: run the tests with npm test',
}

export function onBothEngines(name: string, suite: (engine: Engine) => void): void {
  describe(`${name} on sqlite`, () => suite('sqlite'))
  describe(`${name} on postgres`, NEEDS_POSTGRES, () => suite('postgres'))
}

/** The address of a new, empty database; null for SQLite, which lies in the data directory. */
export async function freshDatabase(engine: Engine): Promise<string | null> {
  if (engine === 'sqlite') return null
  if (!POSTGRES) throw new Error('GAMEKEEPER_TEST_POSTGRES is not set: run the tests with npm test')
  const name = `test_${randomBytes(8).toString('hex')}`
  const client = new pg.Client({ connectionString: POSTGRES })
  await client.connect()
  await client.query(`create database ${name}`)
  await client.end()
  return POSTGRES.replace(/\/[^/]*$/, `/${name}`)
}
