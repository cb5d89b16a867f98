// What is recorded of joins and leaves: a pure function of the lines, so that a service that was killed and looks at the same
// lines again tells the same facts, with the same ids, and each is recorded once.
import { PLAYER_EVENTS_PER_MINUTE, PLAYER_NAMES_MAX } from '../../../contract/fixed-limits.ts'
import { derivedId } from '../../../kit/ids.ts'
import { iso } from '../../../kit/time.ts'
import type { NewFact } from '../../journal/journal.ts'
import type { PlayerEvent } from './player-patterns.ts'

const MINUTE_MS = 60_000

export interface JoinState {
  /** The last line that was looked at. */
  line: number
  /** By the times of the lines: the minute that is being counted, and how many were told in it. */
  minute: number
  told: number
  omitted: { joined: number; left: number; fromLine: number; at: number } | null
  /** Those who have joined and not left; null: more than are remembered. */
  online: string[] | null
}

export const NOTHING_SEEN: JoinState = { line: 0, minute: 0, told: 0, omitted: null, online: [] }

export interface SeenLine {
  event: PlayerEvent
  player: string
  line: number
  at: number
}

/** Changes the state, and answers what is to be told. */
export function takeSeen(serverId: string, state: JoinState, { event, player, line, at }: SeenLine): NewFact[] {
  const facts = closeMinute(serverId, state, at)
  state.online = afterEvent(state.online, event, player)
  state.minute = Math.max(state.minute, Math.floor(at / MINUTE_MS))
  if (state.told < PLAYER_EVENTS_PER_MINUTE) {
    state.told++
    facts.push(factOf(serverId, `player.${event}`, line, at, { player, line, at: iso(at) }))
  } else {
    state.omitted ??= { joined: 0, left: 0, fromLine: line, at }
    state.omitted[event]++
  }
  return facts
}

/** Once the minute is over: what was left out in it. */
export function closeMinute(serverId: string, state: JoinState, now: number): NewFact[] {
  if (Math.floor(now / MINUTE_MS) <= state.minute) return []
  const { omitted } = state
  state.told = 0
  state.omitted = null
  if (!omitted) return []
  const { fromLine, at, joined, left } = omitted
  return [factOf(serverId, 'player.changes_omitted', fromLine, at, { joined, left, fromLine, at: iso(at) })]
}

const factOf = (serverId: string, kind: string, line: number, at: number, properties: object): NewFact => ({
  id: derivedId('act', at, `${kind} ${serverId} ${line}`),
  serverId,
  kind,
  cause: null,
  properties: { ...properties },
})

function afterEvent(online: string[] | null, event: PlayerEvent, player: string): string[] | null {
  if (online === null) return null
  const others = online.filter((name) => name !== player)
  if (event === 'left') return others
  return others.length < PLAYER_NAMES_MAX ? [...others, player] : null
}
