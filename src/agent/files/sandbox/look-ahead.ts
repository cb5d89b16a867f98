// Has what a walk comes to next looked at by other threads. A small tree has been walked before they have begun, so nobody
// is asked before there was much; and a walk waits for others only once they have answered.
import type { Directory } from './directory.ts'
import { isDirectoryIn, type Listed, type Looked, lookedCount, type Seen, seenIn } from './looked.ts'

export interface Lookers {
  /** Whether they have been started, so that to ask them costs nothing more. */
  areStarted(): boolean
  /** Looks at these names, which are bytes read as latin1, in the directory that has the address. */
  look(address: string, names: readonly string[]): Promise<Looked>
}

/** Entries that a walk has passed before it asks. */
const MUCH = 1000
/** The same where nobody was started: that takes about as long as to look at this many (`npm run bench -- backups`, `cold`). */
const WORTH_A_START = 10_000
/** What was asked for and has not been used: of one directory, and of all that a walk is in. */
const PIECES_OF_ONE = 3
const PIECES_OF_ALL = 9
/** A piece of one directory, which becomes larger where there is little in what has the names. */
const NAMES_AT_FIRST = 8
const NAMES_AT_MOST = 512

export interface LookAhead {
  /** For each directory that the walk enters. `names`: of what it holds, in order. `listed`: where others have done it. */
  within(directory: Directory, names: readonly string[], listed?: Listed): LookAheadWithin
}

/** Names are spoken of by their index, in order. */
export interface LookAheadWithin {
  /** What it has to wait for, if anything. */
  waitFor(index: number): Promise<void> | undefined
  /** Undefined where nobody has looked. */
  seen(index: number): Seen | undefined
  /** What the directory of that name held. */
  listed(index: number): Listed | undefined
  /** The walk has left it. */
  end(): void
}

/** Some of the names: from the one index up to, not including, the other. */
interface Piece {
  from: number
  to: number
  looking: Promise<void> | undefined
  looked: Looked | undefined
}

export function createLookAhead(lookers: Lookers): LookAhead {
  const walk = { passed: 0, pieces: 0, isAnswered: false }
  return { within: (directory, names, listed) => createWithin({ lookers, walk, directory, names, listed }) }
}

interface WithinDeps {
  lookers: Lookers
  /** Of the whole walk. */
  walk: { passed: number; pieces: number; isAnswered: boolean }
  directory: Directory
  names: readonly string[]
  listed: Listed | undefined
}

function createWithin({ lookers, walk, directory, names, listed }: WithinDeps): LookAheadWithin {
  /** In the order of their names. */
  const ahead: Piece[] = []
  let isEnded = false
  /** The first name that was not asked for. */
  let next = 0
  /** So many that a piece is about as much as is looked at in one go, with what directories hold. */
  let namesAtOnce = NAMES_AT_FIRST

  function ask(from: number, to: number): Piece {
    const piece: Piece = { from, to, looking: undefined, looked: undefined }
    piece.looking = directory
      .use(() => lookers.look(directory.address, names.slice(from, to)))
      .then(
        (looked) => answered(piece, looked),
        () => {
          // The walk looks itself, and is told why.
          piece.looking = undefined
        },
      )
    walk.pieces++
    return piece
  }

  function answered(piece: Piece, looked: Looked): void {
    walk.isAnswered = true
    piece.looked = looked
    piece.looking = undefined
    const count = lookedCount(looked)
    const left = { from: piece.from + count, to: piece.to }
    if (left.from === left.to) {
      if (count === namesAtOnce) namesAtOnce = Math.min(NAMES_AT_MOST, namesAtOnce * 2)
      return
    }
    namesAtOnce = Math.max(1, count)
    piece.to = left.from
    const place = ahead.indexOf(piece)
    if (!isEnded && place >= 0) ahead.splice(place + 1, 0, ask(left.from, left.to))
  }

  /** What is listed already need not be asked for. */
  function skipKnown(): void {
    while (listed && next < names.length && !isUnlisted(listed, next)) next++
  }

  function askAhead(index: number): void {
    next = Math.max(next, index + 1)
    skipKnown()
    while (next < names.length && ahead.length < PIECES_OF_ONE && walk.pieces < PIECES_OF_ALL) {
      const piece = ask(next, Math.min(names.length, next + namesAtOnce))
      ahead.push(piece)
      next = piece.to
      skipKnown()
    }
  }

  function pieceOf(index: number): Piece | undefined {
    for (let first = ahead[0]; first && first.to <= index; first = ahead[0]) {
      ahead.shift()
      walk.pieces--
    }
    const first = ahead[0]
    return first && first.from <= index ? first : undefined
  }

  return {
    waitFor(index) {
      if (++walk.passed < (lookers.areStarted() ? MUCH : WORTH_A_START) || index >= names.length) return undefined
      const piece = pieceOf(index)
      if (ahead.length < PIECES_OF_ONE) askAhead(index)
      return walk.isAnswered ? piece?.looking : undefined
    },
    seen(index) {
      if (listed) return seenIn(listed, index)
      const piece = pieceOf(index)
      return piece?.looked && seenIn(piece.looked, index - piece.from)
    },
    listed(index) {
      const known = listed?.lists.get(index)
      if (known) return known
      const piece = pieceOf(index)
      return piece?.looked?.lists.get(index - piece.from)
    },
    end() {
      isEnded = true
      walk.pieces -= ahead.splice(0).length
    },
  }
}

/** A directory that was too much for one go. */
const isUnlisted = (listed: Listed, index: number) => isDirectoryIn(listed, index) && !listed.lists.has(index)
