// Asks games who plays, in a thread: what a game answers never holds up the service. A thread that hangs, whoever made it do
// so, is ended, and those who were asked meanwhile are asked once more.
import { Worker } from 'node:worker_threads'
import { PLAYER_QUERY } from '../../../contract/fixed-limits.ts'
import { moduleBeside } from '../../../kit/module-beside.ts'

export interface QueryTarget {
  /** As gamedig calls it. */
  type: string
  port: number
  isTcp: boolean
  /** All ports of the server: no other is ever spoken to. */
  ports: readonly number[]
}

export interface QueryOrder extends QueryTarget {
  id: number
}

export interface QueryAnswer {
  online: number
  max: number | null
  /** null where the game names nobody. */
  names: string[] | null
}

export interface QueryReply {
  id: number
  answer: QueryAnswer | null
}

export interface QueryThread {
  /** null where the game does not answer in time, or what it answers makes no sense. */
  ask(target: QueryTarget): Promise<QueryAnswer | null>
  stop(): void
}

interface Asked {
  order: QueryOrder
  isAgain: boolean
  resolve(answer: QueryAnswer | null): void
  late: NodeJS.Timeout | undefined
}

/** Beyond the time that a game has, for a machine that is busy. */
const GRACE_MS = 1500
/** For the thread to load what it needs. */
const STARTS_WITHIN_MS = 20_000
const IDLE_MS = 90_000
const MEMORY_MIB = 64

export function createQueryThread(): QueryThread {
  const asked = new Map<number, Asked>()
  const waiting: Asked[] = []
  let thread: Worker | undefined
  let isReady = false
  let idle: NodeJS.Timeout | undefined
  let lastId = 0

  function start(): Worker {
    const worker = new Worker(moduleBeside(import.meta.url, 'query-worker'), {
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB },
      // Nothing of the service's, and nothing of what a library has to say.
      env: {},
      stdout: true,
      stderr: true,
    })
    worker.unref()
    worker.on('message', (said: QueryReply | 'ready') => {
      if (said === 'ready') begin()
      else finish(said.id, said.answer)
    })
    worker.on('error', () => {})
    worker.once('exit', () => {
      if (thread === worker) restart()
    })
    return worker
  }

  /** Only now does it hear what it was asked. */
  function begin(): void {
    isReady = true
    for (const one of asked.values()) limit(one)
  }

  function limit(one: Asked): void {
    clearTimeout(one.late)
    one.late = setTimeout(restart, isReady ? PLAYER_QUERY.timeoutMs + GRACE_MS : STARTS_WITHIN_MS).unref()
  }

  function finish(id: number, answer: QueryAnswer | null): void {
    const known = asked.get(id)
    if (!known) return
    asked.delete(id)
    clearTimeout(known.late)
    known.resolve(answer)
    sendNext()
  }

  function sendNext(): void {
    while (asked.size < PLAYER_QUERY.atOnce) {
      const next = waiting.shift()
      if (!next) break
      send(next)
    }
    clearTimeout(idle)
    if (asked.size === 0) idle = setTimeout(end, IDLE_MS).unref()
  }

  function send(one: Asked): void {
    asked.set(one.order.id, one)
    thread ??= start()
    limit(one)
    thread.postMessage(one.order)
  }

  function end(): void {
    const worker = thread
    thread = undefined
    isReady = false
    void worker?.terminate()
  }

  /** It hangs, or has ended: one of those that were asked is to blame, and nobody knows which. */
  function restart(): void {
    end()
    const all = [...asked.values()]
    asked.clear()
    for (const one of all) {
      clearTimeout(one.late)
      if (one.isAgain) one.resolve(null)
      else waiting.unshift({ ...one, isAgain: true })
    }
    sendNext()
  }

  return {
    ask(target) {
      const { promise, resolve } = Promise.withResolvers<QueryAnswer | null>()
      waiting.push({ order: { ...target, id: ++lastId }, isAgain: false, resolve, late: undefined })
      sendNext()
      return promise
    },
    stop() {
      clearTimeout(idle)
      end()
      for (const { resolve, late } of [...asked.values(), ...waiting]) {
        clearTimeout(late)
        resolve(null)
      }
      asked.clear()
      waiting.length = 0
    },
  }
}
