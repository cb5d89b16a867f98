// Looks at what games write for those who join and leave. The supervisor writes the console whether or not we are there, so
// after a restart we go on from the line that we looked at last. One look at a time, for all games: a game that writes without
// end waits its turn like any other.
import { rename, writeFile } from 'node:fs/promises'
import type { Launch } from '../../../contract/games/launch.ts'
import { readRecord } from '../../../kit/files/durable-record.ts'
import { createMutex } from '../../../kit/waiting/mutex.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import type { NewFact } from '../../journal/journal.ts'
import { type ConsolePart, linesOf, newPartBuffer, partsFrom } from '../console/console-parts.ts'
import { findPlace, type Place } from '../console/console-tail.ts'
import { splitLine } from '../console/segments.ts'
import { closeMinute, type JoinState, NOTHING_SEEN, takeSeen } from './join-ledger.ts'
import { createPlayerPatterns, type PlayerPatterns } from './player-patterns.ts'

export interface JoinFollower {
  /** There are, or may be, new lines. */
  wake(serverId: string): void
  /** Tells what was left out of a minute that is over, where nothing is written any more. */
  tick(): void
  /** Who has joined and not left; null where that cannot be told. */
  online(serverId: string): readonly string[] | null
  forget(serverId: string): void
  stop(): void
}

export interface JoinFollowerDeps {
  consoleFolder(serverId: string): string
  /** Where the record of the last line lies. */
  file(serverId: string): string
  /** Of the game that runs, or ran last; null where it was never started. */
  launch(serverId: string): Launch | null
  /** Resolves once all are durable. */
  addFacts(facts: readonly NewFact[]): Promise<void>
  changed(serverId: string): void
  now(): number
  onUnexpected(error: unknown, serverId: string): void
}

interface Followed {
  state: JoinState
  place: Place | undefined
  savedAt: number
}

/** What is written within this time is looked at in one go. */
const LOOK_AFTER_MS = 500
/** Then it is the next one's turn. */
const PARTS_AT_ONCE = 16
/** Of a position that no fact depends on: what is lost of it is looked at again. */
const SAVE_EVERY_MS = 60_000

const RETRY_MS = 15_000

/** What the supervisor writes when a game starts, and when it has ended: nobody plays then. */
const RUN_BEGINS = 'Started.'
const RUN_ENDS = 'Ended '
const BOUNDARIES = [RUN_BEGINS, RUN_ENDS].map((text) => Buffer.from(` g ${text}`))

export function createJoinFollower(deps: JoinFollowerDeps): JoinFollower {
  const followed = new Map<string, Followed>()
  const waiting = new Map<string, NodeJS.Timeout>()
  const patternsOf = new WeakMap<Launch, PlayerPatterns | null>()
  const oneAtATime = createMutex()
  const buffer = newPartBuffer()
  let isStopped = false

  function patternsFor(serverId: string): PlayerPatterns | null {
    const launch = deps.launch(serverId)
    if (!launch) return null
    const known = patternsOf.get(launch) ?? createPlayerPatterns(launch) ?? null
    patternsOf.set(launch, known)
    return known
  }

  function load(serverId: string): Followed {
    const found = followed.get(serverId) ?? { state: readState(deps.file(serverId)), place: undefined, savedAt: 0 }
    followed.set(serverId, found)
    return found
  }

  /** Whether there may be more. */
  async function look(serverId: string, patterns: PlayerPatterns): Promise<boolean> {
    const known = load(serverId)
    const { state } = known
    const folder = deps.consoleFolder(serverId)
    known.place ??= await findPlace(folder, state.line + 1)
    const turns = createTurns(serverId)
    let parts = 0
    let hasTold = false
    const tell = async (facts: readonly NewFact[]) => {
      if (facts.length > 0) await deps.addFacts(facts)
      hasTold ||= facts.length > 0
    }
    if (known.place)
      for await (const part of partsFrom(folder, known.place, buffer)) {
        await tell(isWorthALook(part, patterns) ? factsOf(serverId, state, part, patterns) : [])
        state.line = part.end.line - 1
        known.place = part.end
        if (++parts === PARTS_AT_ONCE) break
        await turns.take()
        // The next service goes on from what is on disk.
        if (isStopped) return false
      }
    const isAtTheEnd = parts < PARTS_AT_ONCE
    // A minute is over for good once nothing that was written in it can still come.
    if (isAtTheEnd) await tell(closeMinute(serverId, state, deps.now() - 2 * LOOK_AFTER_MS))
    if (hasTold || (parts > 0 && deps.now() - known.savedAt > SAVE_EVERY_MS)) await save(serverId, known)
    deps.changed(serverId)
    return !isAtTheEnd
  }

  async function save(serverId: string, known: Followed): Promise<void> {
    // Its folder may be gone.
    if (followed.get(serverId) !== known) return
    const file = deps.file(serverId)
    known.savedAt = deps.now()
    // Not synced: what a power cut takes back is looked at again, and known by its ids.
    await writeFile(`${file}.new`, JSON.stringify(known.state), { mode: 0o600 })
    await rename(`${file}.new`, file)
  }

  async function run(serverId: string): Promise<void> {
    const patterns = isStopped ? null : patternsFor(serverId)
    if (!patterns) return
    try {
      if (await oneAtATime(() => look(serverId, patterns))) schedule(serverId, 0)
    } catch (error) {
      if (isStopped || !followed.has(serverId)) return
      // From what is on disk: what was not told is seen again.
      followed.delete(serverId)
      schedule(serverId, RETRY_MS)
      deps.onUnexpected(error, serverId)
    }
  }

  function schedule(serverId: string, afterMs: number): void {
    if (isStopped || waiting.has(serverId)) return
    const begin = () => {
      waiting.delete(serverId)
      void run(serverId)
    }
    waiting.set(serverId, setTimeout(begin, afterMs).unref())
  }

  return {
    wake(serverId) {
      if (patternsFor(serverId)) schedule(serverId, LOOK_AFTER_MS)
    },
    tick() {
      for (const [serverId, { state }] of followed) if (state.omitted) schedule(serverId, 0)
    },
    online: (serverId) => (patternsFor(serverId)?.isComplete ? (followed.get(serverId)?.state.online ?? null) : null),
    forget(serverId) {
      clearTimeout(waiting.get(serverId))
      waiting.delete(serverId)
      followed.delete(serverId)
    },
    stop() {
      isStopped = true
      for (const timer of waiting.values()) clearTimeout(timer)
      waiting.clear()
    },
  }
}

const isWorthALook = ({ bytes }: ConsolePart, patterns: PlayerPatterns) =>
  patterns.mayMatch(bytes) || BOUNDARIES.some((text) => bytes.includes(text))

function factsOf(serverId: string, state: JoinState, part: ConsolePart, patterns: PlayerPatterns): NewFact[] {
  const facts: NewFact[] = []
  for (const { bytes, line } of linesOf(part)) {
    const found = splitLine(bytes)
    if (!found || found.source === 'command') continue
    const { source, text, at } = found
    if (source === 'gamekeeper') {
      const words = text.toString('utf8')
      if (words.startsWith(RUN_BEGINS) || words.startsWith(RUN_ENDS)) state.online = []
      continue
    }
    const seen = patterns.match(text)
    if (seen) facts.push(...takeSeen(serverId, state, { ...seen, line, at }))
  }
  return facts
}

/** What cannot be read is nothing: the console is looked at from its beginning, and what was told is known by its id. */
function readState(file: string): JoinState {
  try {
    return { ...NOTHING_SEEN, ...readRecord<JoinState>(file) }
  } catch {
    return { ...NOTHING_SEEN }
  }
}
