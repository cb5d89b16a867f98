// One process per PostgreSQL database. The lock is an advisory lock that PostgreSQL releases when the connection ends,
// however that happens. It is held by a transaction that stays open and has touched nothing, so it also holds through
// PgBouncer in transaction mode, which would hand a session lock to another client.
import pg from 'pg'
import { StartFault } from '../../kit/start-fault.ts'

export class DatabaseInUse extends Error {}

export interface DatabaseLock {
  /**
   * Whether this process has it. While it has not, nothing may be asked of the database. Where the connection has just
   * broken, the answer comes with the first attempt to take the lock again.
   */
  isHeld(): boolean | Promise<boolean>
  /** Rejects, once, when another process has taken it while our connection was broken. It never resolves. */
  lost: Promise<never>
  release(): Promise<void>
}

interface LockOptions {
  url: string
  /** Told when the connection that holds the lock broke, and when the lock is held again. */
  onBroken: (error: Error) => void
  onHeldAgain: () => void
}

export const DATABASE = 'The database of GAMEKEEPER_DATABASE_URL'
const LOCK = 1_735_092_837
/** Each schema has tables of its own, and so is a Gamekeeper of its own. */
const SCHEMA_KEY = "hashtext(coalesce(current_schema(), ''))"
/** A process that was killed is not missed at once: its connection may have to end first. */
const PREDECESSOR_ENDS_WITHIN_MS = 3000
const ASK_AGAIN_MS = 100
const CONNECT_AGAIN_MS = 250
const CHECK_EVERY_MS = 5000
const ANSWER_WITHIN_MS = 5000

// No timeout of the server's may end the transaction, and a machine that is gone is missed within half a minute, not
// after two hours: later than we ourselves notice that the connection is dead.
const SETTINGS = {
  idle_in_transaction_session_timeout: '0',
  transaction_timeout: '0',
  tcp_keepalives_idle: '15',
  tcp_keepalives_interval: '5',
  tcp_keepalives_count: '3',
}

/** Where the lock is held from, as PostgreSQL knows it. */
interface Holder {
  pid: number
  since: Date | null
  address: string | null
}

/** Rejects with `DatabaseInUse` where another process has it. */
export async function lockPostgres(options: LockOptions): Promise<DatabaseLock> {
  const { promise: lost, reject: lose } = Promise.withResolvers<never>()
  // Whoever does not listen still sees everything refused.
  lost.catch(() => {})
  let client: pg.Client | null = null
  let ourLast: Holder | undefined
  let firstAttempt: Promise<boolean> | undefined
  let isReleased = false
  let isLost = false
  let check: NodeJS.Timeout | undefined

  async function take(): Promise<void> {
    const opened = await openHolding(options.url, ourLast)
    if (isReleased) return opened.client.end()
    client = opened.client
    ourLast = opened.holder
    client.once('error', (error) => recover(opened.client, error))
    check = setTimeout(look, CHECK_EVERY_MS, client).unref()
  }

  /** A network that swallows everything breaks no connection by itself. */
  function look(holding: pg.Client): void {
    holding.query('select 1').then(
      () => {
        if (holding === client) check = setTimeout(look, CHECK_EVERY_MS, holding).unref()
      },
      (error: Error) => recover(holding, error),
    )
  }

  function recover(broken: pg.Client, error: Error): void {
    if (broken !== client || isReleased) return
    client = null
    clearTimeout(check)
    options.onBroken(error)
    broken.end().catch(() => {})
    firstAttempt = takeAgain()
    void goOn(firstAttempt)
  }

  async function takeAgain(): Promise<boolean> {
    try {
      await take()
      options.onHeldAgain()
      return true
    } catch (error) {
      if (error instanceof DatabaseInUse) {
        isLost = true
        lose(error)
      }
      return false
    }
  }

  async function goOn(first: Promise<boolean>): Promise<void> {
    let isDone = await first
    firstAttempt = undefined
    while (!isDone && !isLost && !isReleased) {
      await new Promise((resolve) => setTimeout(resolve, CONNECT_AGAIN_MS).unref())
      isDone = await takeAgain()
    }
  }

  await take()
  return {
    isHeld: () => client !== null || (firstAttempt ?? false),
    lost,
    async release() {
      isReleased = true
      clearTimeout(check)
      await client?.end().catch(() => {})
      client = null
    },
  }
}

async function openHolding(url: string, ourLast?: Holder): Promise<{ client: pg.Client; holder?: Holder }> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'gamekeeper lock',
    connectionTimeoutMillis: ANSWER_WITHIN_MS,
    query_timeout: ANSWER_WITHIN_MS,
    keepAlive: true,
  })
  // Until it holds the lock its errors come from what is asked of it.
  const ignore = () => {}
  client.on('error', ignore)
  try {
    await client.connect().catch((error: Error) => {
      // Nothing answers; all other reasons have a code.
      throw 'code' in error
        ? error
        : new StartFault(`${DATABASE} cannot be reached (${error.message}).`, { cause: error })
    })
    await client.query('begin')
    await client.query(
      'select set_config(name, wanted.value, true) from pg_settings join json_each_text($1) wanted on wanted.key = name',
      [JSON.stringify(SETTINGS)],
    )
    const holder = await takeBefore(client, performance.now() + PREDECESSOR_ENDS_WITHIN_MS, ourLast)
    return { client, ...(holder ? { holder } : {}) }
  } catch (error) {
    await client.end().catch(ignore)
    throw error
  }
}

async function takeBefore(client: pg.Client, deadline: number, ourLast?: Holder): Promise<Holder | undefined> {
  for (;;) {
    const { rows } = await client.query(`select pg_try_advisory_xact_lock($1, ${SCHEMA_KEY}) as taken`, [LOCK])
    const holder = await findHolder(client)
    if (rows[0].taken) return holder
    if (holder && isSame(holder, ourLast)) {
      // Our own connection, dead to us and not yet to PostgreSQL.
      await client.query('select pg_terminate_backend($1)', [holder.pid])
    } else if (performance.now() >= deadline) {
      throw new DatabaseInUse(refusalFor(holder))
    }
    await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS))
  }
}

const isSame = (a: Holder, b?: Holder) => a.pid === b?.pid && a.since?.getTime() === b.since?.getTime()

async function findHolder(client: pg.Client): Promise<Holder | undefined> {
  const { rows } = await client.query<Holder>(
    `select pid, backend_start as since, host(client_addr) as address
     from pg_locks left join pg_stat_activity using (pid)
     where locktype = 'advisory' and granted and objsubid = 2 and classid = $1 and objid::bigint = ${SCHEMA_KEY}::bigint & 4294967295
       and pg_locks.database = (select oid from pg_database where datname = current_database())`,
    [LOCK],
  )
  return rows[0]
}

function refusalFor(holder: Holder | undefined): string {
  const from = holder?.address ? ` (connected from ${holder.address} since ${holder.since?.toISOString()})` : ''
  return (
    `${DATABASE} is in use by another Gamekeeper${from}. ` +
    'One process may use it: stop the other one, or give this one a database of its own.'
  )
}
