// Limits heavy work: a maximum at once in total, and one per server, beyond which its work waits. Waiting servers are
// served in turn, so that a busy one delays only its own work.
import { fail } from '../contract/errors.ts'
import { TRANSFERS } from '../contract/fixed-limits.ts'

export interface SharesOptions {
  /** Of all servers together; as many as there are by default. */
  atOnce?: number
  /** By default a server may have one, and more as long as it leaves as many free as it has, and all leave room for others. */
  atOncePerServer?: number
  /** Further ones are refused with `rate_limited`. */
  waitingPerServer: number
  /** Whoever has waited this long is refused with `rate_limited`; nobody is by default. */
  waitMs?: number
}

export interface Shares {
  /** Runs the work when it is its turn. One whose signal fires while it waits is never begun. */
  run<T>(serverId: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>
}

interface Server {
  running: number
  waiting: (() => void)[]
}

const RETRY_AFTER_SECONDS = 2

/**
 * A server that holds its transfers for as long as it can has a share of them: never more than are left free, and n servers
 * together leave 1 / (n + 1). What is left is for the first transfers of other servers.
 */
export function createTransferShares(atOnce: number): Shares {
  const waitingPerServer = Math.max(1, Math.floor(atOnce / 4))
  return createShares({ atOnce, waitingPerServer, waitMs: TRANSFERS.waitMs })
}

export function createShares(options: SharesOptions): Shares {
  const { atOnce = Number.POSITIVE_INFINITY, atOncePerServer, waitingPerServer, waitMs } = options
  /** Those that run or wait; whoever was served last is last. */
  const servers = new Map<string, Server>()
  let running = 0
  /** Servers of which something runs. */
  let busy = 0

  function mayBegin(server: Server): boolean {
    const free = atOnce - running
    if (free <= 0) return false
    if (atOncePerServer !== undefined) return server.running < atOncePerServer
    if (server.running === 0) return true
    return server.running < free && (free - 1) * (busy + 1) >= atOnce
  }

  function count(server: Server): void {
    running++
    if (server.running++ === 0) busy++
  }

  function dispatch(): void {
    // One that is served comes last, and so is looked at again.
    for (const [serverId, server] of servers) {
      if (running >= atOnce) return
      if (server.waiting.length === 0 || !mayBegin(server)) continue
      servers.delete(serverId)
      servers.set(serverId, server)
      count(server)
      server.waiting.shift()?.()
    }
  }

  function release(serverId: string, server: Server): void {
    running--
    if (--server.running === 0) busy--
    forgetIdle(serverId, server)
    dispatch()
  }

  function forgetIdle(serverId: string, server: Server): void {
    if (server.running === 0 && server.waiting.length === 0) servers.delete(serverId)
  }

  /** Undefined, so that nobody waits, where there is room: whoever waits then waits for its own server. */
  function enter(serverId: string, server: Server, signal: AbortSignal): Promise<void> | undefined {
    servers.set(serverId, server)
    if (!mayBegin(server)) return waitForTurn(serverId, server, signal)
    const isNew = server.running === 0
    count(server)
    // One more server to share with: together they may have more.
    if (isNew) dispatch()
    return undefined
  }

  async function waitForTurn(serverId: string, server: Server, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const leave = (reason: unknown) => {
      server.waiting.splice(server.waiting.indexOf(begin), 1)
      stopWaiting()
      forgetIdle(serverId, server)
      reject(reason)
    }
    const onAbort = () => leave(signal.reason)
    const tooLong = () => leave(refused('What is under way of this kind leaves no room for more.'))
    const timer = waitMs === undefined ? undefined : setTimeout(tooLong, waitMs)
    const stopWaiting = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    }
    // At once: whoever has begun can no longer leave the queue.
    const begin = () => {
      stopWaiting()
      resolve()
    }
    signal.addEventListener('abort', onAbort, { once: true })
    server.waiting.push(begin)
    await promise
  }

  return {
    async run(serverId, signal, work) {
      signal.throwIfAborted()
      const server = servers.get(serverId) ?? { running: 0, waiting: [] }
      if (server.waiting.length >= waitingPerServer)
        throw refused('Too many requests of this kind are waiting on this server.')
      const turn = enter(serverId, server, signal)
      if (turn) await turn
      try {
        return await work()
      } finally {
        release(serverId, server)
      }
    },
  }
}

function refused(detail: string) {
  return fail('rate_limited', { detail, headers: { 'retry-after': String(RETRY_AFTER_SECONDS) } })
}
