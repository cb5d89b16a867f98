// The lines of a console: the newest page first, then whatever is written, for as long as somebody looks.
import { type ConsoleLine, isApiError } from '../../../../../src/sdk/index.ts'
import { client } from '../../../api/client.ts'
import { LINES_AT_MOST } from './terminal.ts'

const PAGE = 500

export interface ConsoleSink {
  append(lines: readonly ConsoleLine[]): void
  replace(lines: readonly ConsoleLine[]): void
}

export interface ConsoleFeed {
  readonly lines: readonly ConsoleLine[]
  /** Whether there are more before those. */
  readOlder(): Promise<boolean>
  close(): void
}

interface FeedOptions {
  onState(state: 'loading' | 'live' | 'lost' | { error: unknown }): void
  onOlder(hasOlder: boolean): void
}

export function openConsoleFeed(serverId: string, sink: ConsoleSink, { onState, onOlder }: FeedOptions): ConsoleFeed {
  const closed = new AbortController()
  const { signal } = closed
  let lines: ConsoleLine[] = []
  let waiting: ConsoleLine[] = []
  let flush: ReturnType<typeof setTimeout> | undefined

  /** Many lines a second are written in few turns, so that the page stays quick. */
  function take(line: ConsoleLine): void {
    waiting.push(line)
    flush ??= setTimeout(() => {
      flush = undefined
      lines.push(...waiting)
      if (lines.length > LINES_AT_MOST) lines = lines.slice(-LINES_AT_MOST)
      sink.append(waiting)
      waiting = []
    }, 40)
  }

  async function readPage(before?: number): Promise<ConsoleLine[]> {
    const query = { limit: PAGE, ...(before === undefined ? {} : { before }) }
    const page = await client.console.read(serverId, query, { signal })
    onOlder(page.nextCursor !== null)
    return page.data.toReversed()
  }

  async function run(): Promise<void> {
    onState('loading')
    lines = await readPage()
    sink.replace(lines)
    onState('live')
    const lastEventId = String(lines.at(-1)?.line ?? 0)
    for await (const line of client.console.follow(serverId, {
      signal,
      lastEventId,
      onReconnect: () => onState('lost'),
    })) {
      onState('live')
      take(line)
    }
  }

  run().catch((error: unknown) => {
    if (signal.aborted || isApiError(error, 'unauthenticated')) return
    onState({ error })
  })
  return {
    get lines() {
      return lines
    },
    async readOlder() {
      const [first] = lines
      if (!first) return false
      const older = await readPage(first.line)
      lines = [...older, ...lines].slice(0, LINES_AT_MOST)
      sink.replace(lines)
      return older.length > 0
    },
    close() {
      closed.abort()
      clearTimeout(flush)
    },
  }
}
