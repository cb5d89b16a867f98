// Records the facts that agents report: file changes, finished uploads, damage found by a scrub. An entry has the id of
// its fact, so a fact is recorded once, however often it is read and whether the request that caused it or the
// background reader gets there first.
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { type ActivityEvent, EVENTS } from '../../contract/activity.ts'
import type { AgentFact, AgentFacts } from '../../contract/agent.ts'
import type { Db, Trx } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import { type Actor, SYSTEM } from '../http/actor.ts'
import type { Idempotency } from '../http/idempotency.ts'
import type { Activity } from './service.ts'

/** In one transaction; on SQLite everything else waits for it. */
const BATCH = 20
const WAIT_MS = 20_000
const FIRST_REST_MS = 500
const LONGEST_REST_MS = 15_000
/** Where this many fail one after the other, it is the database and not the facts. */
const FAILURES_IN_A_ROW = 3

export interface FactKeeper {
  /** Records the result of a request. Never fails: where the database refuses, the reader tries again later. */
  record(actor: Actor, fact: AgentFact): Promise<void>
  /** Records every fact that there is of a server; fails where the database refuses one. */
  recordAllOf(serverId: string): Promise<void>
  /** Resolves once what an earlier process left is recorded, as far as it can be: before requests are taken. */
  start(): Promise<void>
  stop(): Promise<void>
}

interface Rest {
  failures: number
  until: number
}

export function createFactKeeper(deps: {
  db: Db
  facts: AgentFacts
  activity: Activity
  idempotency: Pick<Idempotency, 'rememberLate'>
  log: Logger
}): FactKeeper {
  const { db, facts, activity, idempotency, log } = deps
  const stopping = new AbortController()
  const stopped = new Promise<never[]>((resolve) => stopping.signal.addEventListener('abort', () => resolve([])))
  /** Facts that could not be recorded rest a while, longer each time, and keep no others waiting. */
  const resting = new Map<string, Rest>()
  let loop: Promise<void> = Promise.resolve()

  async function keep(trx: Trx, fact: AgentFact, actor?: Actor): Promise<void> {
    const { id, serverId, kind, properties } = fact
    if (!(kind in EVENTS)) return log.error({ id, kind }, 'the agent tells of something that has no name here')
    const entry = { id, event: kind as ActivityEvent, serverId, properties }
    const outcome = await activity.recordOnce(trx, entry, () => actor ?? actorOf(trx, fact))
    // Nothing follows the entry that tells of the deletion.
    if (outcome === 'gone') return log.warn({ id, kind, serverId }, 'a fact came too late: its server is deleted')
    if (outcome === 'known') return
    if (fact.idempotency && fact.answer !== undefined)
      await idempotency.rememberLate(trx, fact.idempotency, fact.answer)
  }

  /** Answers the ids of those that are recorded. */
  async function keepAll(batch: readonly AgentFact[]): Promise<string[]> {
    // In one order, so that two who lock several chains do not wait for each other.
    const sorted = batch.toSorted((a, b) => (a.serverId < b.serverId ? -1 : a.serverId > b.serverId ? 1 : 0))
    try {
      await transact(db, {}, async (trx) => {
        for (const fact of sorted) await keep(trx, fact)
      })
      return batch.map(({ id }) => id)
    } catch (error) {
      return batch.length === 1 ? rest(batch, error) : await keepEach(batch)
    }
  }

  /** One that cannot be recorded must not hold up the others. */
  async function keepEach(batch: readonly AgentFact[]): Promise<string[]> {
    const kept: string[] = []
    let failures = 0
    const byFailures = batch.toSorted((a, b) => failuresOf(a) - failuresOf(b))
    for (const [index, fact] of byFailures.entries()) {
      try {
        await transact(db, {}, (trx) => keep(trx, fact))
        kept.push(fact.id)
        failures = 0
      } catch (error) {
        failures++
        rest([fact], error)
        if (failures === FAILURES_IN_A_ROW) {
          rest(byFailures.slice(index + 1), error)
          break
        }
      }
    }
    return kept
  }

  const failuresOf = ({ id }: AgentFact) => resting.get(id)?.failures ?? 0

  function rest(batch: readonly AgentFact[], error: unknown): never[] {
    if (batch.length > 0) log.error({ err: error, facts: batch.map(({ id }) => id) }, 'facts could not be recorded')
    for (const fact of batch) {
      const failures = failuresOf(fact) + 1
      const restMs = Math.min(LONGEST_REST_MS, FIRST_REST_MS * 2 ** (failures - 1))
      resting.set(fact.id, { failures, until: performance.now() + restMs })
    }
    return []
  }

  function readNext(waitMs: number): Promise<AgentFact[]> {
    const now = performance.now()
    const except = [...resting].filter(([, { until }]) => until > now)
    const nextMs = except.reduce((ms, [, { until }]) => Math.min(ms, Math.ceil(until - now)), waitMs)
    return facts.read({ limit: BATCH, waitMs: nextMs, except: except.map(([id]) => id) })
  }

  async function forget(ids: string[]): Promise<void> {
    for (const id of ids) resting.delete(id)
    if (ids.length > 0) await facts.forget({ ids })
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        const batch = await Promise.race([readNext(WAIT_MS), stopped])
        if (batch.length > 0) await forget(await keepAll(batch))
      } catch (error) {
        log.error({ err: error }, 'facts of the agent could not be read')
        await delay(FIRST_REST_MS, undefined, { signal: stopping.signal, ref: false }).catch(() => {})
      }
    }
  }

  return {
    async record(actor, fact) {
      try {
        await transact(db, {}, (trx) => keep(trx, fact, actor))
        await forget([fact.id])
      } catch (error) {
        rest([fact], error)
      }
    },
    async recordAllOf(serverId) {
      const next = () => facts.readAllOf({ serverId, limit: BATCH })
      for (let batch = await next(); batch.length > 0; batch = await next()) {
        const found = batch
        await transact(db, {}, async (trx) => {
          for (const fact of found) await keep(trx, fact)
        })
        await forget(found.map(({ id }) => id))
      }
    },
    async start() {
      for (let batch = await readNext(0); batch.length > 0; batch = await readNext(0))
        await forget(await keepAll(batch))
      loop = run()
    },
    async stop() {
      stopping.abort()
      await loop
    },
  }
}

async function actorOf(trx: Trx, { cause }: AgentFact): Promise<Actor> {
  if (!cause) return SYSTEM
  const token = await trx.selectFrom('tokens').select('name').where('id', '=', cause.tokenId).executeTakeFirst()
  return {
    ...SYSTEM,
    type: 'token',
    id: cause.tokenId,
    name: token?.name ?? '',
    source: cause.source ?? 'link',
    ip: cause.ip,
    userAgent: cause.userAgent,
    requestId: cause.requestId,
  }
}
