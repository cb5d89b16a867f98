// Every change to a server's files is recorded here before the disk is touched (an intent), and its result afterwards
// (a fact), until control has recorded it. An intent left by a crash is settled at the next start by looking at the
// disk, so a change that happened has its fact, and one that did not has none.
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentFact, AgentFacts, FactCause, KeptRequest } from '../../contract/agent.ts'
import { PROPERTIES_MAX_BYTES } from '../../contract/fixed-limits.ts'
import { hasCode } from '../../kit/files/errno.ts'
import { newId } from '../../kit/ids.ts'
import { shortened } from '../../kit/shorten.ts'
import { explainedDisk } from '../files/sandbox/errors.ts'
import { type Log, openLog } from './log.ts'

/** Whoever asked for a change records it with the answer; only if that does not happen is it offered to readers. */
const CALLER_FIRST_MS = 2000

export interface Intent {
  id: string
  at: number
  serverId: string
  /** The event that the fact will tell of. */
  kind: string
  cause: FactCause | null
  requestId: string | null
  idempotency: KeptRequest | null
  /** What lets the next start see on the disk how far the change came. */
  probe: { op: string }
}

export interface Outcome {
  properties: Record<string, unknown>
  /** For a repetition of the request; absent where only a part of it was done. */
  answer?: unknown
}

export interface Journal extends AgentFacts {
  /** The change may be made once `durable` has resolved. */
  begin(intent: Omit<Intent, 'id' | 'at'>): { intent: Intent; durable: Promise<void> }
  /** Needs no space and no sync: should it be lost, the intent is settled again. */
  complete(intent: Intent, outcome: Outcome): void
  /** Nothing has happened. */
  drop(intent: Intent): void
  /**
   * What happened without an intent, on disk once this resolves. Where it can be told twice, `id` is made of what
   * happened, so that it is recorded once.
   */
  add(fact: NewFact): Promise<void>
  /** What an earlier process has left unsettled. */
  unsettled(): Intent[]
  /** Answers those who wait for facts. */
  stop(): void
  close(): void
}

export type NewFact = Pick<AgentFact, 'serverId' | 'kind' | 'cause' | 'properties'> & { id?: string }

type Line = { intent: Intent } | { fact: AgentFact } | { gone: string[] }

export function createJournal(deps: {
  folder: string
  /** Where facts lay, a file each, before there was a journal. */
  oldFolder?: string
  now: () => number
  onUnexpected: (error: unknown) => void
}): Journal {
  const intents = new Map<string, Intent>()
  const facts = new Map<string, AgentFact>()
  const offeredAt = new Map<string, number>()
  /** Of requests that were answered and whose facts are still here. */
  const byRequest = new Map<string, AgentFact>()
  let isStopped = false
  const waiting = new Set<() => void>()

  function replay(line: object): void {
    const known = line as Line
    if ('intent' in known) intents.set(known.intent.id, known.intent)
    if ('fact' in known) keep(known.fact, 0)
    if ('gone' in known) for (const id of known.gone) forgetOne(id)
  }

  function forgetOne(id: string): void {
    const fact = facts.get(id)
    if (fact) byRequest.delete(requestOf(fact))
    intents.delete(id)
    facts.delete(id)
    offeredAt.delete(id)
  }

  function* live(): Generator<Line> {
    for (const intent of intents.values()) yield { intent }
    for (const fact of facts.values()) yield { fact }
  }

  const log: Log = openLog({ folder: deps.folder, replay, live, onDamage: deps.onUnexpected })
  const left = new Map(intents)
  if (deps.oldFolder) takeOver(deps.oldFolder)

  /** For what can be told again from the disk, or does no harm when it is. */
  function note(line: Line): void {
    try {
      log.append(line)
    } catch (error) {
      deps.onUnexpected(error)
    }
  }

  function keep(fact: AgentFact, offered: number): void {
    intents.delete(fact.id)
    facts.set(fact.id, fact)
    if (fact.requestId) byRequest.set(requestOf(fact), fact)
    offeredAt.set(fact.id, offered)
    for (const wake of waiting) wake()
  }

  function takeOver(folder: string): void {
    const taken: string[] = []
    for (const name of filesIn(folder)) {
      const fact = parsedFact(readFileSync(join(folder, name), 'utf8'))
      if (fact) {
        replay({ fact })
        log.append({ fact })
        taken.push(name)
      } else deps.onUnexpected(new Error(`${join(folder, name)} is no fact that can be read; it stays where it is`))
    }
    if (taken.length === 0) return
    const drop = () => {
      for (const name of taken) rmSync(join(folder, name), { force: true })
    }
    void log.sync().then(drop, deps.onUnexpected)
  }

  const write = (line: Line) =>
    explainedDisk(async () => {
      log.append(line)
      await log.sync()
    })

  /** Those that may be read now, and how long until there are more without anything happening. */
  function offered(limit: number, except: ReadonlySet<string>): { found: AgentFact[]; nextMs: number } {
    const now = performance.now()
    const found: AgentFact[] = []
    let nextMs = Number.POSITIVE_INFINITY
    for (const fact of facts.values()) {
      if (found.length === limit) break
      if (except.has(fact.id)) continue
      const at = offeredAt.get(fact.id) ?? 0
      if (at <= now) found.push(fact)
      else nextMs = Math.min(nextMs, at - now)
    }
    return { found, nextMs }
  }

  const ofServer = (serverId: string) => facts.values().filter((fact) => fact.serverId === serverId)

  return {
    begin(fields) {
      const at = deps.now()
      const intent: Intent = { id: newId('act', at), at, ...fields }
      intents.set(intent.id, intent)
      return { intent, durable: write({ intent }) }
    },

    complete({ probe: _, ...intent }, { properties, answer }) {
      const fact: AgentFact = {
        ...intent,
        properties: shortened(properties, PROPERTIES_MAX_BYTES),
        ...(intent.idempotency && answer ? { answer } : {}),
      }
      const hasCaller = intent.requestId !== null && !left.has(intent.id)
      keep(fact, hasCaller ? performance.now() + CALLER_FIRST_MS : 0)
      note({ fact })
    },

    drop({ id }) {
      forgetOne(id)
      note({ gone: [id] })
    },

    async add({ id, properties, ...fields }) {
      const at = deps.now()
      const fact: AgentFact = {
        id: id ?? newId('act', at),
        at,
        requestId: null,
        idempotency: null,
        properties: shortened(properties, PROPERTIES_MAX_BYTES),
        ...fields,
      }
      if (facts.has(fact.id)) return await log.sync()
      // Among the facts from the beginning, so that a new generation has it, and not offered before it is on disk.
      keep(fact, Number.POSITIVE_INFINITY)
      try {
        await write({ fact })
      } catch (error) {
        forgetOne(fact.id)
        throw error
      }
      keep(fact, 0)
    },

    unsettled: () => [...left.values()].filter(({ id }) => intents.has(id)),

    stop() {
      isStopped = true
      for (const wake of waiting) wake()
    },
    close: () => log.close(),

    async read({ limit, waitMs, except = [] }) {
      const skipped = new Set(except)
      const until = performance.now() + waitMs
      for (;;) {
        const { found, nextMs } = offered(limit, skipped)
        const leftMs = until - performance.now()
        if (found.length > 0 || leftMs <= 0 || isStopped) return found
        const { promise: added, resolve: wake } = Promise.withResolvers<void>()
        waiting.add(wake)
        const timer = setTimeout(wake, Math.min(leftMs, nextMs))
        await added
        clearTimeout(timer)
        waiting.delete(wake)
      }
    },

    readAllOf: async ({ serverId, limit }) => [...ofServer(serverId).take(limit)],

    find: async (request) => byRequest.get(requestOf(request)) ?? null,

    async forget({ ids }) {
      const known = ids.filter((id) => facts.has(id))
      for (const id of known) forgetOne(id)
      if (known.length > 0) note({ gone: known })
    },
  }
}

const requestOf = ({ serverId, requestId }: { serverId: string; requestId?: string | null }) =>
  `${serverId} ${requestId}`

function parsedFact(text: string): AgentFact | undefined {
  try {
    const fact = JSON.parse(text) as AgentFact | null
    return fact?.id && fact.serverId && fact.kind ? fact : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => name.startsWith('act_') && !name.includes('.'))
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
}
