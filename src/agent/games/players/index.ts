// Who plays on the games of this machine: asked of the game where its template says how, else counted in its console.
import { PLAYER_QUERY } from '../../../contract/fixed-limits.ts'
import type { Launch } from '../../../contract/games/launch.ts'
import type { Players, PlayersUnknown } from '../../../contract/games/players.ts'
import { iso } from '../../../kit/time.ts'
import type { NewFact } from '../../journal/journal.ts'
import { createJoinFollower } from './join-follower.ts'
import { createPresenceBook, type Presence } from './presence.ts'
import { createQueryThread, type QueryAnswer, type QueryTarget, type QueryThread } from './query-thread.ts'

export type { Presence } from './presence.ts'

export interface GamePlayers {
  /** Asks the game, where it was not asked within the last ten seconds. */
  read(serverId: string): Promise<Players>
  /** Asks nobody: what is known. For whoever decides whether a game may sleep. */
  presence(serverId: string): Presence
  /** The game has written something, or its state has changed. */
  wake(serverId: string): void
  /** Asks those of the games that run whose answer is old. Waits for none of them. */
  sample(running: readonly string[]): void
  forget(serverId: string): void
  stop(): void
}

export interface GamePlayersDeps {
  /** Whether players can join. */
  isRunning(serverId: string): boolean
  launch(serverId: string): Launch | null
  consoleFolder(serverId: string): string
  recordFile(serverId: string): string
  addFact(fact: NewFact): Promise<void>
  now(): number
  onUnexpected(error: unknown, serverId: string): void
  thread?: QueryThread
}

interface Asked {
  at: number
  /** Of the question under way, or of the last one. */
  answer: Promise<QueryAnswer | null>
  isOver: boolean
}

export function createGamePlayers(deps: GamePlayersDeps): GamePlayers {
  const { now } = deps
  const thread = deps.thread ?? createQueryThread()
  const book = createPresenceBook(now)
  const asked = new Map<string, Asked>()
  const joins = createJoinFollower({
    consoleFolder: deps.consoleFolder,
    file: deps.recordFile,
    launch: deps.launch,
    addFacts: async (facts) => void (await Promise.all(facts.map(deps.addFact))),
    changed: noteConsole,
    now,
    onUnexpected: deps.onUnexpected,
  })

  function noteConsole(serverId: string): void {
    if (deps.isRunning(serverId)) book.noteConsole(serverId, joins.online(serverId)?.length ?? null)
    else forgetRun(serverId)
  }

  function forgetRun(serverId: string): void {
    book.forget(serverId)
    if (asked.get(serverId)?.isOver) asked.delete(serverId)
  }

  /** One question at a time, and its answer counts for a while: also that there was none. */
  function ask(serverId: string, target: QueryTarget): Promise<QueryAnswer | null> {
    const known = asked.get(serverId)
    if (known && (!known.isOver || now() - known.at < PLAYER_QUERY.keptMs)) return known.answer
    const mine: Asked = { at: now(), isOver: false, answer: thread.ask(target) }
    asked.set(serverId, mine)
    void mine.answer.then((answer) => {
      Object.assign(mine, { at: now(), isOver: true })
      if (deps.isRunning(serverId)) book.noteAnswer(serverId, answer?.online ?? null)
    })
    return mine.answer
  }

  return {
    async read(serverId) {
      const launch = deps.launch(serverId)
      if (!launch || !deps.isRunning(serverId)) return unknown('not_running', now())
      const target = targetOf(launch)
      const answer = target && (await ask(serverId, target))
      const at = iso(asked.get(serverId)?.at ?? now())
      if (answer) return { ...shownAnswer(answer), at }
      const names = joins.online(serverId)
      if (names)
        return { online: names.length, max: null, players: names.map(asPlayer), source: 'console', reason: null, at }
      return unknown(target ? 'no_answer' : 'not_supported', now())
    },

    presence: (serverId) => (deps.isRunning(serverId) ? book.read(serverId) : { online: null, emptySince: null }),
    wake(serverId) {
      if (!deps.isRunning(serverId)) forgetRun(serverId)
      joins.wake(serverId)
    },

    sample(running) {
      joins.tick()
      for (const serverId of running) {
        const launch = deps.isRunning(serverId) ? deps.launch(serverId) : null
        const target = launch && targetOf(launch)
        if (target && now() - (asked.get(serverId)?.at ?? 0) >= PLAYER_QUERY.sampleMs) void ask(serverId, target)
      }
    },

    forget(serverId) {
      asked.delete(serverId)
      book.forget(serverId)
      joins.forget(serverId)
    },
    stop() {
      joins.stop()
      thread.stop()
    },
  }
}

const asPlayer = (name: string) => ({ name })

const shownAnswer = ({ online, max, names }: QueryAnswer) => ({
  online,
  max,
  players: names?.map(asPlayer) ?? null,
  source: 'query' as const,
  reason: null,
})

const unknown = (reason: PlayersUnknown, now: number): Players => ({
  online: null,
  max: null,
  players: null,
  source: null,
  reason,
  at: iso(now),
})

/** Null where the template does not say how to ask, or asks at a port that it does not have. */
function targetOf({ query, ports }: Launch): QueryTarget | null {
  const port = query && ports.find(({ name }) => name === query.port)
  if (!port) return null
  return { type: query.type, port: port.port, isTcp: port.protocol === 'tcp', ports: ports.map((each) => each.port) }
}
