import {
  type ActivityEntry,
  type ActivityQuery,
  listActivity,
  listAllActivity,
  verifyActivity,
  verifyAllActivity,
} from '../contract/activity.ts'
import { bytesOf } from './bytes.ts'
import { itemsOf } from './pages.ts'
import type { CallOptions } from './request.ts'
import { type FollowOptions, followActivity } from './streams/follow-activity.ts'
import type { Transport } from './transport.ts'

export const EXPORT_FORMATS = { ndjson: 'application/x-ndjson', csv: 'text/csv' } as const
export type ExportFormat = keyof typeof EXPORT_FORMATS
type Entries = AsyncGenerator<ActivityEntry, void, undefined>

/** A chain is followed from end to end, which takes as long as it is. */
const UNHURRIED = { timeoutMs: 0 }

export function createActivityApi(transport: Transport) {
  const list = transport.method(
    listActivity,
    (serverId: string, query: ActivityQuery = {}, options: CallOptions = {}) => ({
      params: { serverId },
      query,
      ...options,
    }),
  )
  const listEverything = transport.method(listAllActivity, (query: ActivityQuery = {}, options: CallOptions = {}) => ({
    query,
    ...options,
  }))
  return {
    /** One page of a server's activity, newest first. */
    list,
    all: (serverId: string, query: ActivityQuery = {}, options: CallOptions = {}): Entries =>
      itemsOf((pageQuery: ActivityQuery) => list(serverId, pageQuery, options), query),
    /** One page of the activity of everything. Needs a token for all servers. */
    listEverything,
    allOfEverything: (query: ActivityQuery = {}, options: CallOptions = {}): Entries =>
      itemsOf((pageQuery: ActivityQuery) => listEverything(pageQuery, options), query),
    /** Entries as they are written, oldest first, across broken connections. */
    follow: (serverId: string, options: FollowOptions = {}): Entries => followActivity(transport, serverId, options),
    /** Everything that matches, newest first, as bytes of the format. `serverId` null: of everything. */
    async export(
      serverId: string | null,
      format: ExportFormat,
      query: Omit<ActivityQuery, 'limit' | 'cursor'> = {},
      options: CallOptions = {},
    ): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
      const accept = EXPORT_FORMATS[format]
      const response =
        serverId === null
          ? await transport.open(listAllActivity, { query, ...options }, { accept })
          : await transport.open(listActivity, { params: { serverId }, query, ...options }, { accept })
      return bytesOf(response)
    },
    /** Whether anybody has tampered with a server's activity. */
    verify: transport.method(verifyActivity, (serverId: string, options: CallOptions = {}) => ({
      params: { serverId },
      ...UNHURRIED,
      ...options,
    })),
    verifyEverything: transport.method(verifyAllActivity, (options: CallOptions = {}) => ({
      ...UNHURRIED,
      ...options,
    })),
  }
}
