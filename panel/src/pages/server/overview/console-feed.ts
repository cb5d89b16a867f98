// The lines of a console: the newest page first, then whatever is written, for as long as somebody looks; and what came before,
// also before earlier starts, as far back as somebody scrolls.
import type { ConsoleLine } from '../../../../../src/sdk/index.ts'
import { client } from '../../../api/client.ts'
import { type Connection, followInSight, type StreamState } from '../../../api/live/live-stream.ts'
import { LINES_AT_MOST } from './terminal.ts'

const PAGE = 500

export interface ConsoleSink {
  append(lines: readonly ConsoleLine[]): void
  /** `firstShown`: the index of the line to show at the top; the newest are shown without it. Resolves once they stand there. */
  replace(lines: readonly ConsoleLine[], firstShown?: number): Promise<void>
}

export interface ConsoleFeed {
  readonly lines: readonly ConsoleLine[]
  readOlder(): Promise<void>
  /** Where a line stands in `lines`, which reach back to it from then on; null where it is too far back, or gone. */
  reach(line: number): Promise<number | null>
  /** The newest line with this text among those that are older than `lines`. */
  findOlder(text: string): Promise<number | null>
  close(): void
}

interface FeedOptions {
  onState(state: 'loading' | StreamState): void
  onOlder(hasOlder: boolean): void
  /** There is a line, or none was ever written. */
  onEmpty(isEmpty: boolean): void
}

export function openConsoleFeed(serverId: string, sink: ConsoleSink, options: FeedOptions): ConsoleFeed {
  const { onState, onOlder, onEmpty } = options
  const closed = new AbortController()
  const { signal } = closed
  let lines: ConsoleLine[] = []
  let waiting: ConsoleLine[] = []
  let flush: ReturnType<typeof setTimeout> | undefined
  let hasOlder = false
  /** The newest that was read or has arrived; null until the first page was read. */
  let lastLine: number | null = null
  let reading: Promise<void> | null = null

  function setOlder(isThere: boolean): void {
    hasOlder = isThere && lines.length < LINES_AT_MOST
    onOlder(hasOlder)
  }

  /** Many lines a second are written in few turns, so that the page stays quick. */
  function take(line: ConsoleLine): void {
    waiting.push(line)
    flush ??= setTimeout(() => {
      flush = undefined
      if (lines.length === 0) onEmpty(false)
      lines.push(...waiting)
      if (lines.length > LINES_AT_MOST) lines = lines.slice(-LINES_AT_MOST)
      sink.append(waiting)
      waiting = []
    }, 40)
  }

  /** Oldest first. */
  async function readPage(before?: number): Promise<{ page: ConsoleLine[]; isLast: boolean }> {
    const query = { limit: PAGE, ...(before === undefined ? {} : { before }) }
    const { data, nextCursor } = await client.console.read(serverId, query, { signal })
    return { page: data.toReversed(), isLast: nextCursor === null }
  }

  /** Page by page, until it is enough or there is nothing more. */
  async function readBack(isEnough: (first: number) => boolean): Promise<void> {
    const older: ConsoleLine[][] = []
    let count = 0
    let isLast = false
    const oldest = lines[0]?.line
    let first = oldest
    do {
      if (first === undefined) break
      const read = await readPage(first)
      isLast = read.isLast
      older.unshift(read.page)
      count += read.page.length
      first = read.page[0]?.line
    } while (!isLast && first !== undefined && !isEnough(first) && lines.length + count < LINES_AT_MOST)
    // Meanwhile so much was written that lines have gone: between these and those would be a hole.
    if (lines[0]?.line !== oldest) return
    lines = [...older.flat(), ...lines]
    setOlder(!isLast)
    if (count > 0) await sink.replace(lines, count)
  }

  /** One at a time: a second one would read the same page. */
  async function readBackOnce(isEnough: (first: number) => boolean): Promise<void> {
    await reading
    if (!hasOlder || lines.length >= LINES_AT_MOST) return
    reading = readBack(isEnough).finally(() => {
      reading = null
    })
    await reading
  }

  async function readNewest(): Promise<void> {
    const { page, isLast } = await readPage()
    lines = page
    lastLine = lines.at(-1)?.line ?? 0
    setOlder(!isLast)
    onEmpty(lines.length === 0)
    void sink.replace(lines)
  }

  async function follow(connection: Connection): Promise<void> {
    if (lastLine === null) await readNewest()
    const lastEventId = String(lastLine)
    for await (const line of client.console.follow(serverId, { ...connection, lastEventId })) {
      lastLine = line.line
      take(line)
    }
  }

  onState('loading')
  void followInSight(follow, onState, signal)
  return {
    get lines() {
      return lines
    },
    readOlder: () => (reading ? reading : readBackOnce(() => true)),
    async reach(line) {
      if ((lines[0]?.line ?? 0) > line) await readBackOnce((first) => first <= line)
      const index = lines.findIndex((each) => each.line >= line)
      return index < 0 || (lines[0]?.line ?? 0) > line ? null : index
    },
    async findOlder(text) {
      const [first] = lines
      if (!first || !hasOlder) return null
      const { data } = await client.console.read(serverId, { before: first.line, limit: 1, q: text }, { signal })
      return data[0]?.line ?? null
    },
    close() {
      closed.abort()
      clearTimeout(flush)
    },
  }
}
