// What is kept in memory of each pack as a whole.
import { crc32 } from 'node:zlib'
import { spansIn } from '../format/pack-table.ts'
import type { Span } from '../format/spans.ts'

export interface PackNote {
  /** Of its table, as an index lists it: a pack with another one stands in the place of this one. */
  tableCrc: number
  /** Where it has the list of its spans. */
  spans: Span | undefined
}

/** `table` is all of it. */
export const noteOfPack = (table: Uint8Array): PackNote => ({ tableCrc: crc32(table), spans: spansIn(table) })
