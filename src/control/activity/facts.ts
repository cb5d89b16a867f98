// Writes down what agents tell of: an upload that arrived, damage that a scrub found. A fact is recorded once, also
// when a crash comes between recording and forgetting.
import type { Logger } from 'pino'
import { type ActivityEvent, EVENTS } from '../../contract/activity.ts'
import type { AgentFact, AgentFacts } from '../../contract/agent.ts'
import type { Db, Trx } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import { type Actor, SYSTEM } from '../http/actor.ts'
import type { Activity } from './service.ts'

const LAST = 'facts.last'
const BATCH = 100
const WAIT_MS = 20_000
const PAUSE_AFTER_FAULT_MS = 2000

export interface FactKeeper {
  start(): void
  stop(): Promise<void>
}

export function createFactKeeper(deps: { db: Db; facts: AgentFacts; activity: Activity; log: Logger }): FactKeeper {
  const { db, facts, activity, log } = deps
  const stopping = new AbortController()
  const stopped = new Promise<never[]>((resolve) => stopping.signal.addEventListener('abort', () => resolve([])))
  let loop: Promise<void> = Promise.resolve()

  async function keep(fact: AgentFact): Promise<void> {
    await transact(db, {}, async (trx) => {
      const last = await trx.selectFrom('instance').select('value').where('key', '=', LAST).executeTakeFirst()
      if (last && last.value >= fact.id) return
      if (fact.kind in EVENTS) {
        await activity.record(trx, await actorOf(trx, fact), fact.kind as ActivityEvent, fact.serverId, fact.properties)
      } else {
        log.error({ kind: fact.kind }, 'the agent tells of something that has no name here')
      }
      await trx
        .insertInto('instance')
        .values({ key: LAST, value: fact.id })
        .onConflict((conflict) => conflict.column('key').doUpdateSet({ value: fact.id }))
        .execute()
    })
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        const batch = await Promise.race([facts.read({ limit: BATCH, waitMs: WAIT_MS }), stopped])
        for (const fact of batch) await keep(fact)
        const last = batch.at(-1)
        if (last) await facts.forget({ upTo: last.id })
      } catch (error) {
        log.error({ err: error }, 'facts of the agent could not be written down')
        await Promise.race([new Promise((resolve) => setTimeout(resolve, PAUSE_AFTER_FAULT_MS).unref()), stopped])
      }
    }
  }

  return {
    start() {
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
    source: 'link',
    ip: cause.ip,
    userAgent: cause.userAgent,
    requestId: cause.requestId,
  }
}
