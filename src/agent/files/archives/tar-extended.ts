// What a tar says of an entry before the entry itself: pax records, and the long names of GNU tar. An archive may hold any
// number of them, so only what is used is kept, and they are counted.
import { TAR_EXTENDED_MAX_BYTES, TAR_EXTENDED_MAX_HEADERS } from '../../../contract/fixed-limits.ts'
import { MAX_PATH_BYTES } from '../sandbox/paths.ts'
import { invalidArchive } from './entry.ts'
import type { TarReader } from './tar-blocks.ts'

const BLOCK = 512
const SPACE = 0x20
const EQUALS = 0x3d
const MAX_LENGTH_DIGITS = 7

const KEYS = ['path', 'linkpath', 'size'] as const
type Key = (typeof KEYS)[number]
export type Overrides = Partial<Record<Key, Buffer>>

/** pax records, a global one, GNU's long name and long target: they belong to what follows them. */
export const isExtended = (type: string) => type === 'x' || type === 'g' || type === 'L' || type === 'K'

/** Of one entry. */
export function createExtended() {
  const overrides: Overrides = {}
  let headers = 0
  let bytes = 0
  return {
    overrides,
    async take(reader: TarReader, type: string, size: number): Promise<void> {
      bytes += size
      if (++headers > TAR_EXTENDED_MAX_HEADERS || bytes > TAR_EXTENDED_MAX_BYTES)
        throw invalidArchive('The archive says more of one entry than an entry can have.')
      const body = await reader.take(Math.ceil(size / BLOCK) * BLOCK)
      if (body === undefined) throw invalidArchive('The archive is cut short.')
      if (type === 'x') Object.assign(overrides, parsePax(body.subarray(0, size)))
      if (type === 'L') overrides.path = kept(untilNul(body.subarray(0, size)))
      if (type === 'K') overrides.linkpath = kept(untilNul(body.subarray(0, size)))
    },
  }
}

export function untilNul(bytes: Buffer): Buffer {
  const end = bytes.indexOf(0)
  return end === -1 ? bytes : bytes.subarray(0, end)
}

/** A copy, since the block that it stands in is much larger. */
function kept(value: Buffer): Buffer {
  if (value.length > MAX_PATH_BYTES) throw invalidArchive('The archive holds a name of impossible length.')
  return Buffer.from(value)
}

function parsePax(body: Buffer): Overrides {
  const records: Overrides = {}
  for (let at = 0; at < body.length; ) {
    const space = body.subarray(at, at + MAX_LENGTH_DIGITS + 1).indexOf(SPACE)
    const length = space > 0 ? Number(body.toString('latin1', at, at + space)) : 0
    const record = body.subarray(at, at + length)
    const equals = record.indexOf(EQUALS)
    if (!Number.isInteger(length) || record.length !== length || equals <= space)
      throw invalidArchive('The archive is damaged: a record is malformed.')
    const key = record.toString('latin1', space + 1, equals)
    if (key.startsWith('GNU.sparse.')) throw invalidArchive('The archive holds a sparse file, which is not unpacked.')
    const known = KEYS.find((name) => name === key)
    if (known) records[known] = kept(record.subarray(equals + 1, -1))
    at += length
  }
  return records
}
