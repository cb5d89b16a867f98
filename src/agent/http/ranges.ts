// Which part of a file a request asks for, and whether it has it already (RFC 9110).
import type { IncomingHttpHeaders } from 'node:http'
import { fail } from '../../contract/errors.ts'
import { httpDate, timeOf } from '../../http/dates.ts'
import { wholeSeconds } from '../../kit/files/file-times.ts'
import { isTagListedWeakly, isWanted, type Version } from '../files/reading/entries.ts'

export interface ByteRange {
  start: number
  /** Included. */
  end: number
}

/** Undefined means all of it: no range, several ranges, another unit or text that is not a range. */
export function parseRange(header: string | undefined, sizeBytes: number): ByteRange | 'unsatisfiable' | undefined {
  const [, from, to] = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header ?? '') ?? []
  if (from === undefined || to === undefined || (from === '' && to === '')) return undefined
  if (from === '') {
    const length = Math.min(Number(to), sizeBytes)
    return length === 0 ? 'unsatisfiable' : { start: sizeBytes - length, end: sizeBytes - 1 }
  }
  const start = Number(from)
  if (to !== '' && Number(to) < start) return undefined
  if (start >= sizeBytes) return 'unsatisfiable'
  return { start, end: to === '' ? sizeBytes - 1 : Math.min(Number(to), sizeBytes - 1) }
}

/** A range is given only of the version that the client has the rest of. */
export function rangeOf(headers: IncomingHttpHeaders, version: Version, sizeBytes: number) {
  const condition = headers['if-range']
  if (condition !== undefined && condition !== version.etag && condition !== httpDate(version.modifiedAt))
    return undefined
  return parseRange(headers.range, sizeBytes)
}

/** For a client that wants no other version than the one it knows. */
export function requireVersion(headers: IncomingHttpHeaders, version: Version): void {
  const ifUnmodifiedSince = timeOf(headers['if-unmodified-since'])
  if (!isWanted(version, { ifMatch: headers['if-match'], ifUnmodifiedSince }))
    throw fail('precondition_failed', 'It is another version than the one that was asked for.')
}

export function isUnchanged(headers: IncomingHttpHeaders, { etag, modifiedAt }: Version): boolean {
  const tags = headers['if-none-match']
  if (tags !== undefined) return isTagListedWeakly(tags, etag)
  return wholeSeconds(modifiedAt) <= timeOf(headers['if-modified-since'])
}

/** Of every answer that has the version or says that the client has it. */
export function versionHeaders({ etag, modifiedAt }: Version) {
  return {
    etag,
    'last-modified': httpDate(modifiedAt),
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-cache',
  }
}
