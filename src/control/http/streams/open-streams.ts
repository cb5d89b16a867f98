// Responses that stay open. Each ends at once when its token is revoked or expires, when its session ends, when its server
// is deleted, and when the service stops.
import { fail } from '../../../contract/errors.ts'
import type { Actor } from '../actor.ts'

const STREAMS_PER_TOKEN = 50
const REMEMBERED_MAX = 100_000
const LONGEST_TIMER_MS = 2 ** 31 - 1

export interface Streams {
  /** Runs `work` with a signal that says when the stream has to end. */
  hold<T>(actor: Actor, serverId: string | null, work: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** The same for an answer that is a sequence. It breaks off with an error, so that nobody takes it for whole. */
  holdEach<T>(
    actor: Actor,
    serverId: string | null,
    source: (signal: AbortSignal) => AsyncIterable<T>,
  ): AsyncGenerator<T>
  endForToken(tokenId: string): void
  endForSession(sessionId: string): void
  endForServer(serverId: string): void
  endAll(): void
  count(): number
}

interface Stream {
  tokenId: string
  sessionId: string | null
  serverId: string | null
  abort: AbortController
}

export function createStreams({ clock }: { clock: { now(): number } }): Streams {
  const open = new Set<Stream>()
  /** Tokens, sessions and servers that are gone for good: a request that was let in before must not open a stream after. */
  const gone = new Set<string>()
  let closed = false

  function begin(actor: Actor, serverId: string | null): Stream & { end(): void } {
    const mine = [...open].filter((stream) => stream.tokenId === actor.id).length
    if (mine >= STREAMS_PER_TOKEN) {
      throw fail('rate_limited', {
        detail: `A token may have at most ${STREAMS_PER_TOKEN} open streams.`,
        headers: { 'retry-after': '5' },
      })
    }
    const sessionId = actor.session?.id ?? null
    const stream = { tokenId: actor.id, sessionId, serverId, abort: new AbortController() }
    if (closed || [actor.id, sessionId, serverId].some((id) => id !== null && gone.has(id))) stream.abort.abort()
    open.add(stream)
    const endsAt = Math.min(actor.expiresAt ?? Infinity, actor.session?.endsAt ?? Infinity)
    const expiry = setTimeout(() => stream.abort.abort(), Math.min(endsAt - clock.now(), LONGEST_TIMER_MS)).unref()
    const end = () => {
      clearTimeout(expiry)
      open.delete(stream)
    }
    return { ...stream, end }
  }

  function endFor(id: string): void {
    if (gone.size >= REMEMBERED_MAX) gone.clear()
    gone.add(id)
    for (const stream of open)
      if (stream.tokenId === id || stream.sessionId === id || stream.serverId === id) stream.abort.abort()
  }

  return {
    async hold(actor, serverId, work) {
      const stream = begin(actor, serverId)
      try {
        return await work(stream.abort.signal)
      } finally {
        stream.end()
      }
    },
    async *holdEach(actor, serverId, source) {
      const stream = begin(actor, serverId)
      try {
        const { signal } = stream.abort
        for await (const item of source(signal)) {
          signal.throwIfAborted()
          yield item
        }
      } finally {
        stream.end()
      }
    },
    endForToken: endFor,
    endForSession: endFor,
    endForServer: endFor,
    endAll() {
      closed = true
      for (const stream of open) stream.abort.abort()
    },
    count: () => open.size,
  }
}
