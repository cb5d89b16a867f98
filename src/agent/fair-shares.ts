// Limits heavy work: a maximum at once in total, and one per server, beyond which its work waits. Waiting servers are
// served in turn, so that a busy one delays only its own work.
import { fail } from '../contract/errors.ts'

export interface SharesOptions {
  /** Of all servers together; as many as there are by default. */
  atOnce?: number
  atOncePerServer: number
  /** Further ones are refused with `rate_limited`. */
  waitingPerServer: number
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

/** A quarter for one server at the most, and as many that wait: no tenant has the descriptors or the connections of others. */
export function createTransferShares(atOnce: number): Shares {
  const quarter = Math.max(1, Math.floor(atOnce / 4))
  return createShares({ atOnce, atOncePerServer: quarter, waitingPerServer: quarter })
}

export function createShares(options: SharesOptions): Shares {
  const { atOnce = Number.POSITIVE_INFINITY, atOncePerServer, waitingPerServer } = options
  /** Those that run or wait; whoever was served last is last. */
  const servers = new Map<string, Server>()
  let running = 0

  function dispatch(): void {
    for (const [serverId, server] of servers) {
      if (running >= atOnce) return
      if (server.running >= atOncePerServer) continue
      const begin = server.waiting.shift()
      if (!begin) continue
      servers.delete(serverId)
      servers.set(serverId, server)
      running++
      server.running++
      begin()
    }
  }

  function release(serverId: string, server: Server): void {
    running--
    server.running--
    forgetIdle(serverId, server)
    dispatch()
  }

  function forgetIdle(serverId: string, server: Server): void {
    if (server.running === 0 && server.waiting.length === 0) servers.delete(serverId)
  }

  /** Undefined, so that nobody waits, where there is room: whoever waits then waits for its own server. */
  function enter(serverId: string, server: Server, signal: AbortSignal): Promise<void> | undefined {
    servers.set(serverId, server)
    if (running >= atOnce || server.running >= atOncePerServer) return waitForTurn(serverId, server, signal)
    running++
    server.running++
    return undefined
  }

  async function waitForTurn(serverId: string, server: Server, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const leave = () => {
      server.waiting.splice(server.waiting.indexOf(begin), 1)
      forgetIdle(serverId, server)
      reject(signal.reason)
    }
    const begin = () => {
      signal.removeEventListener('abort', leave)
      resolve()
    }
    signal.addEventListener('abort', leave, { once: true })
    server.waiting.push(begin)
    await promise
  }

  return {
    async run(serverId, signal, work) {
      signal.throwIfAborted()
      const server = servers.get(serverId) ?? { running: 0, waiting: [] }
      if (server.waiting.length >= waitingPerServer)
        throw fail('rate_limited', {
          detail: 'Too many requests of this kind are waiting on this server.',
          headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
        })
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
