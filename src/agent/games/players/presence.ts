// How many play on each server, and since when nobody does: what decides whether a game may sleep. Two sources, and neither is
// trusted to say that nobody plays while the other says that somebody does.

export interface Presence {
  /** null where nothing tells. */
  online: number | null
  /** In milliseconds; null while somebody plays or nothing tells. It begins when we first know, not before. */
  emptySince: number | null
}

export interface PresenceBook {
  /** What a game has answered; null: it did not. */
  noteAnswer(serverId: string, online: number | null): void
  /** What the joins and leaves of its console add up to; null: they do not tell. */
  noteConsole(serverId: string, online: number | null): void
  read(serverId: string): Presence
  /** The game has ended. */
  forget(serverId: string): void
}

interface Known {
  answer: { online: number; at: number } | null
  console: number | null
  emptySince: number | null
}

/** A game that is asked every half minute may miss two questions. */
const ANSWER_COUNTS_MS = 90_000

export function createPresenceBook(now: () => number): PresenceBook {
  const servers = new Map<string, Known>()

  function update(serverId: string, change: Partial<Known>): void {
    servers.set(serverId, { answer: null, console: null, emptySince: null, ...servers.get(serverId), ...change })
    read(serverId)
  }

  function read(serverId: string): Presence {
    const known = servers.get(serverId)
    if (!known) return { online: null, emptySince: null }
    const answered = known.answer && now() - known.answer.at <= ANSWER_COUNTS_MS ? known.answer.online : null
    const counts = [answered, known.console].filter((count) => count !== null)
    const isEmpty = counts.length > 0 && counts.every((count) => count === 0)
    known.emptySince = isEmpty ? (known.emptySince ?? now()) : null
    return { online: answered ?? known.console, emptySince: known.emptySince }
  }

  return {
    // Without an answer, the last one counts until it is too old.
    noteAnswer: (serverId, online) => update(serverId, online === null ? {} : { answer: { online, at: now() } }),
    noteConsole: (serverId, online) => update(serverId, { console: online }),
    read,
    forget: (serverId) => void servers.delete(serverId),
  }
}
