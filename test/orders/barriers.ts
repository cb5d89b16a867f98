// The await points: before each statement and commit, after each transaction, before and after each call of the agent.
// They are put around Kysely's drivers and the Agent port, so that what runs between them is the code as it is shipped.
import { type CompiledQuery, type DatabaseConnection, PostgresDriver, SqliteDriver } from 'kysely'
import type { Agent } from '../../src/contract/agent.ts'
import type { Forward } from '../../src/http/forward.ts'
import { type Actor, arrive, currentActor, step } from './actors.ts'

/** What is being done on a connection since it was taken. */
interface Use {
  actor: Actor | undefined
  statements: number
  firstPoint: number
  isTransaction: boolean
  backend: number | undefined
}

type Execute = (query: CompiledQuery) => Promise<{ rows: unknown[] }>

const uses = new WeakMap<object, Use>()
const backends = new WeakMap<object, number>()
const originals = new WeakMap<object, Execute>()
let sqliteHolder: Actor | 'others' | undefined

let installed = false

/** For this process, for good: whoever is nobody's actor does not notice. */
export function installBarriers(): void {
  if (installed) return
  installed = true
  patch(SqliteDriver.prototype, 'sqlite')
  patch(PostgresDriver.prototype, 'postgres')
}

function patch(driver: SqliteDriver | PostgresDriver, engine: 'sqlite' | 'postgres'): void {
  const acquire = driver.acquireConnection
  const release = driver.releaseConnection as (connection: DatabaseConnection) => Promise<void>

  driver.acquireConnection = async function (this: never) {
    const actor = currentActor()
    const firstPoint = actor?.points.length ?? 0
    await arrive('connect')
    if (actor && engine === 'sqlite') actor.waitsFor = sqliteHolder
    const connection = await acquire.call(this)
    if (actor) actor.waitsFor = undefined
    if (engine === 'sqlite') sqliteHolder = actor ?? 'others'
    const execute = originals.get(connection) ?? instrument(connection, engine)
    const backend = actor && engine === 'postgres' ? await backendOf(connection, execute) : undefined
    if (backend !== undefined) actor?.backends.add(backend)
    uses.set(connection, { actor, statements: 0, firstPoint, isTransaction: false, backend })
    return connection
  }

  driver.releaseConnection = async function (this: never, connection: DatabaseConnection) {
    const use = uses.get(connection)
    uses.delete(connection)
    if (use?.backend !== undefined) use.actor?.backends.delete(use.backend)
    if (engine === 'sqlite') sqliteHolder = undefined
    await release.call(this, connection)
    if (use?.isTransaction) await arrive('transaction ended')
  } as typeof driver.releaseConnection
}

function instrument(connection: DatabaseConnection, engine: 'sqlite' | 'postgres'): Execute {
  const execute = connection.executeQuery.bind(connection) as Execute
  originals.set(connection, execute)
  const observed: Execute = async (query) => {
    const use = uses.get(connection)
    if (!use?.actor) return execute(query)
    const label = describe(query)
    // The first is announced by `connect`, while nothing is held yet.
    if (use.statements++ === 0) use.actor.describePoint(label, use.firstPoint)
    // Within a transaction on SQLite nobody else gets at the database: what can differ differs at its end.
    else if (engine === 'postgres' || label === 'commit') await arrive(label)
    if (label === 'begin') use.isTransaction = true
    return step('underWay', () => execute(query))
  }
  connection.executeQuery = observed as typeof connection.executeQuery
  return execute
}

async function backendOf(connection: DatabaseConnection, execute: Execute): Promise<number> {
  let backend = backends.get(connection)
  if (backend === undefined) {
    const query = { sql: 'select pg_backend_pid() as pid', parameters: [] } as unknown as CompiledQuery
    const { rows } = await execute(query)
    backend = (rows[0] as { pid: number }).pid
    backends.set(connection, backend)
  }
  return backend
}

function describe({ sql }: CompiledQuery): string {
  const [, verb = sql] = /^\s*(\w+)/.exec(sql) ?? []
  const [, table] = /\b(?:from|into|update)\s+"?(\w+)/i.exec(sql) ?? []
  return table ? `${verb} ${table}` : verb
}

/** Asked again and again while work goes on elsewhere: the answer is waited for, but nothing is under way here. */
const WAITING = new Set(['tasks.poll', 'facts.read'])

export function withBarriers(agent: Agent): Agent {
  // No operation here starts a game.
  const wrapped: Record<string, object> = { games: agent.games }
  for (const area of ['servers', 'files', 'backups', 'tasks', 'facts', 'links', 'disks'] as const) {
    const methods = agent[area] as unknown as Record<string, unknown>
    const barred: Record<string, unknown> = {}
    for (const [name, method] of Object.entries(methods)) {
      barred[name] = typeof method === 'function' ? barredCall(`${area}.${name}`, method.bind(methods)) : method
    }
    wrapped[area] = barred
  }
  return wrapped as unknown as Agent
}

function barredCall(name: string, call: (...request: unknown[]) => unknown) {
  return async (...request: unknown[]) => {
    if (!currentActor()) return call(...request)
    await arrive(`agent ${name}`)
    const answer = WAITING.has(name) ? await call(...request) : await step('asking', async () => call(...request))
    await arrive(`agent ${name} answered`)
    return answer
  }
}

export function withForwardBarriers(forward: Forward): Forward {
  return async (...request) => {
    await arrive('agent forward')
    const answer = await step('asking', async () => forward(...request))
    await arrive('agent forward answered')
    return answer
  }
}
