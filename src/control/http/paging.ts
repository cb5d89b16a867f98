// Keyset cursors. A cursor is signed for the list that issued it: one that was made up, altered or taken from another
// list is refused.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { fail } from '../../contract/errors.ts'
import type { Page } from '../../contract/schema.ts'

const MAC_BYTES = 12
const LIMIT_DEFAULT = 50
/** A path may hold bytes that take six characters of JSON each; packed, any fits into what a cursor may have. */
const PACKED_FROM_BYTES = 512
const PACKED = Buffer.from([0])

export type CursorKey = readonly (string | number)[]

export interface Cursors {
  encode(list: string, key: CursorKey): string
  decode(list: string, cursor: string): CursorKey
}

export function createCursors(secret: Buffer): Cursors {
  const mac = (list: string, payload: Buffer) =>
    createHmac('sha256', secret).update(list).update('\0').update(payload).digest().subarray(0, MAC_BYTES)

  return {
    encode(list, key) {
      const payload = pack(Buffer.from(JSON.stringify(key)))
      return Buffer.concat([mac(list, payload), payload]).toString('base64url')
    },
    decode(list, cursor) {
      const bytes = Buffer.from(cursor, 'base64url')
      const payload = bytes.subarray(MAC_BYTES)
      const genuine = payload.length > 0 && timingSafeEqual(bytes.subarray(0, MAC_BYTES), mac(list, payload))
      if (!genuine || bytes.toString('base64url') !== cursor) {
        const errors = [{ path: '/cursor', message: 'is not a cursor that this list has given out' }]
        throw fail('invalid_request', { detail: 'The cursor was not issued by this list.', errors })
      }
      return JSON.parse(unpack(payload).toString()) as CursorKey
    },
  }
}

/** JSON never begins with a zero byte. */
const pack = (json: Buffer) =>
  json.length < PACKED_FROM_BYTES ? json : Buffer.concat([PACKED, deflateRawSync(json, { level: 9 })])
const unpack = (payload: Buffer) => (payload[0] === 0 ? inflateRawSync(payload.subarray(1)) : payload)

export interface PageRequest {
  limit: number
  after: CursorKey | null
}

export function pageRequest(cursors: Cursors, list: string, query: { limit?: number; cursor?: string }): PageRequest {
  return {
    limit: query.limit ?? LIMIT_DEFAULT,
    after: query.cursor === undefined ? null : cursors.decode(list, query.cursor),
  }
}

/** Of `limit + 1` rows that were asked for, the last says only that there are more. */
export function pageOf<Row, T>(
  rows: readonly Row[],
  request: PageRequest,
  present: (row: Row) => T,
  cursorOf: (row: Row) => string,
): Page<T> {
  const shown = rows.slice(0, request.limit)
  const last = shown.at(-1)
  const nextCursor = rows.length > request.limit && last !== undefined ? cursorOf(last) : null
  return { data: shown.map(present), nextCursor }
}

/**
 * Of a list that is read as a whole: the page after the item with the key of the cursor, or, where that item is gone, after
 * what was before it.
 */
export function pageOfWhole<T>(
  cursors: Cursors,
  list: string,
  query: { limit?: number; cursor?: string },
  items: readonly T[],
  keyOf: (item: T) => string,
): Page<T> {
  const { limit, after } = pageRequest(cursors, list, query)
  const [lastKey, lastIndex] = after ?? []
  const found = items.findIndex((item) => keyOf(item) === lastKey)
  const start = found >= 0 ? found + 1 : Number(lastIndex ?? 0)
  const data = items.slice(start, start + limit)
  const last = data.at(-1)
  const isMore = last !== undefined && start + limit < items.length
  return { data, nextCursor: isMore ? cursors.encode(list, [keyOf(last), start + limit - 1]) : null }
}

const ROWS_AT_A_TIME = 200

/** For rows of which not all are shown to everybody: reads on, newest first, until the page is full. */
export async function pageOfVisible<Row extends { id: string }, T>(
  request: PageRequest,
  readBefore: (id: string | null, limit: number) => Promise<Row[]>,
  isVisible: (row: Row) => boolean,
  present: (row: Row) => T,
  cursorOf: (row: Row) => string,
): Promise<Page<T>> {
  const shown: Row[] = []
  let before = request.after ? String(request.after[0]) : null
  while (shown.length <= request.limit) {
    const rows = await readBefore(before, ROWS_AT_A_TIME)
    shown.push(...rows.filter(isVisible))
    if (rows.length < ROWS_AT_A_TIME) break
    before = rows.at(-1)?.id ?? null
  }
  return pageOf(shown, request, present, cursorOf)
}
