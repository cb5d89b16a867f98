// What will be read of packs, and when: so that what is needed soon comes together, and what is needed last gives way.
import type { ByteRange } from '../../../blobs/store.ts'

/** Who reads in order has no more fetched than will be read with the next so many reads: of most packs all that is wanted. */
const AHEAD_TURNS = 512

export interface WantedRange extends ByteRange {
  /** How many blocks of it. */
  uses: number
}

export interface ExpectedRange extends ByteRange {
  /** When it will be read, as far as that is known: after what was expected before. One for each use, the next one first. */
  turns: number[]
}

/** Ranges by where they begin, the one that will be read next first. */
export type Ranges = Map<number, ExpectedRange>

export interface Session {
  /** By pack, in the order in which they will be read. */
  expected: Map<string, Ranges>
  turns: number
  isInOrder: boolean
  isClosed: boolean
}

export function rangesIn({ expected }: Session, packId: string): Ranges {
  const ranges: Ranges = expected.get(packId) ?? new Map()
  expected.set(packId, ranges)
  return ranges
}

/** `uses` of them at the next turn. */
export function expectOf(session: Session, packId: string, { offset, length, uses }: WantedRange): void {
  const turn = session.turns++
  addTurns(rangesIn(session, packId), { offset, length, turns: new Array(uses).fill(turn) })
}

export function addTurns(ranges: Ranges, { offset, length, turns }: ExpectedRange): void {
  const known = ranges.get(offset)
  if (!known) ranges.set(offset, { offset, length, turns })
  // Nearly always: what is expected comes after what was.
  else if ((turns[0] ?? 0) >= (known.turns.at(-1) ?? 0)) known.turns.push(...turns)
  else known.turns.unshift(...turns)
}

/** All that is expected of the pack, and what is wanted of it now. */
export function takeAll(session: Session, packId: string, ranges: readonly WantedRange[]): Ranges {
  const taken: Ranges = session.expected.get(packId) ?? new Map()
  session.expected.delete(packId)
  for (const { offset, length, uses } of ranges)
    if (!taken.has(offset)) taken.set(offset, { offset, length, turns: new Array(uses).fill(session.turns++) })
  return taken
}

/** Of these, what will be read soon; the rest stays expected. */
export function takeNearest(session: Session, packId: string, ranges: readonly WantedRange[]): Ranges {
  const isWanted = new Set(ranges.map(({ offset }) => offset))
  const all = [...takeAll(session, packId, ranges).values()].sort((one, other) => turnOf(one) - turnOf(other))
  const first = all.find(({ offset }) => ranges.length === 0 || isWanted.has(offset))
  const end = (first ? turnOf(first) : 0) + AHEAD_TURNS
  const isNear = (range: ExpectedRange) => isWanted.has(range.offset) || turnOf(range) < end
  const later = all.filter((range) => !isNear(range))
  if (later.length > 0) session.expected.set(packId, rangesOf(later))
  return rangesOf(all.filter(isNear))
}

const turnOf = ({ turns: [next] }: ExpectedRange) => next ?? Number.POSITIVE_INFINITY

const rangesOf = (ranges: readonly ExpectedRange[]): Ranges => new Map(ranges.map((range) => [range.offset, range]))

/** The pack that will be read next of those that nobody has fetched. */
export function nextOf({ expected, isInOrder }: Session): string | undefined {
  const [first] = expected.keys()
  if (!isInOrder) return first
  let [next, turn] = [first, Number.POSITIVE_INFINITY]
  for (const [packId, ranges] of expected) {
    const nearest = nextTurn(ranges)
    if (nearest < turn) [next, turn] = [packId, nearest]
  }
  return next
}

export function nextTurn(ranges: Ranges): number {
  let turn = Number.POSITIVE_INFINITY
  for (const range of ranges.values()) turn = Math.min(turn, turnOf(range))
  return turn
}

export function use(left: Ranges, { offset, uses }: WantedRange): void {
  const range = left.get(offset)
  range?.turns.splice(0, uses)
  if (range?.turns.length === 0) left.delete(offset)
}
