// Answers that stay open. Each ends at once when its token is revoked or expires, when its server goes, and when the
// service stops.
import { fail } from '../../contract/errors.ts'
import type { Actor } from './actor.ts'

const STREAMS_PER_TOKEN = 50
const LONGEST_TIMER_MS = 2 ** 31 - 1

export interface Streams {
  /** Runs `work` with a signal that says when the stream has to end. */
  hold<T>(actor: Actor, serverId: string | null, work: (signal: AbortSignal) => Promise<T>): Promise<T>
  endForToken(tokenId: string): void
  endForServer(serverId: string): void
  endAll(): void
  count(): number
}

interface Stream {
  tokenId: string
  serverId: string | null
  abort: AbortController
}

export function createStreams({ clock }: { clock: { now(): number } }): Streams {
  const open = new Set<Stream>()
  const endWhere = (matches: (stream: Stream) => boolean) => {
    for (const stream of open) if (matches(stream)) stream.abort.abort()
  }

  return {
    async hold(actor, serverId, work) {
      const mine = [...open].filter((stream) => stream.tokenId === actor.id).length
      if (mine >= STREAMS_PER_TOKEN) {
        throw fail('rate_limited', {
          detail: `A token may hold ${STREAMS_PER_TOKEN} streams open.`,
          headers: { 'retry-after': '5' },
        })
      }
      const stream = { tokenId: actor.id, serverId, abort: new AbortController() }
      open.add(stream)
      const left = actor.expiresAt === null ? LONGEST_TIMER_MS : actor.expiresAt - clock.now()
      const expiry = setTimeout(() => stream.abort.abort(), Math.min(left, LONGEST_TIMER_MS)).unref()
      try {
        return await work(stream.abort.signal)
      } finally {
        clearTimeout(expiry)
        open.delete(stream)
      }
    },
    endForToken: (tokenId) => endWhere((stream) => stream.tokenId === tokenId),
    endForServer: (serverId) => endWhere((stream) => stream.serverId === serverId),
    endAll: () => endWhere(() => true),
    count: () => open.size,
  }
}
