// Why the database cannot be used at a start, in a sentence that says what to do.
import pg from 'pg'
import { isFailure } from '../../contract/errors.ts'
import { StartFault } from '../../kit/start-fault.ts'
import { DATABASE } from './postgres-lock.ts'

/** The database's own words follow where they say more than we know; a password is never among them. */
const SENTENCES: Record<string, (said: string) => string> = {
  '3D000': (said) => `${DATABASE} does not exist (${said}). Make it first, for example with createdb.`,
  '28P01': (said) => `${DATABASE} refuses the user or the password (${said}).`,
  '28000': (said) => `${DATABASE} refuses the user or the password (${said}).`,
  '42501': (said) => `${DATABASE} does not let its user do what is needed (${said}). Let the user own the database.`,
  '57P03': (said) => `${DATABASE} is not ready yet (${said}). Start again when it is.`,
}

/** Runs what opens the database, with faults that lie outside of us as sentences. */
export async function explained<T>(sqliteFile: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw startFaultOf(sqliteFile, isFailure(error, 'not_ready') ? error.cause : error) ?? error
  }
}

function startFaultOf(sqliteFile: string, error: unknown): StartFault | undefined {
  if (!(error instanceof Error) || error instanceof StartFault) return undefined
  const { code, errstr, syscall } = error as { code?: string; errstr?: string; syscall?: string }
  if (error instanceof pg.DatabaseError) {
    const sentence = SENTENCES[code ?? '']?.(error.message)
    return sentence === undefined ? undefined : new StartFault(sentence, { cause: error })
  }
  if (code === 'ERR_SQLITE_ERROR')
    return new StartFault(`The database ${sqliteFile} cannot be used (${errstr}).`, { cause: error })
  // At a start nothing else is connected to.
  if (syscall !== undefined || /^(?:E[A-Z]+|SELF_SIGNED.*|.*CERT.*)$/.test(code ?? ''))
    return new StartFault(`${DATABASE} cannot be reached (${code}).`, { cause: error })
  return undefined
}
