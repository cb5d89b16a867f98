// TSIG (RFC 8945) with hmac-sha256: signs what we send and proves that an answer came from the holder of the key.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { DnsProviderError } from './provider.ts'
import { normaliseName } from './records.ts'
import { encodeName } from './wire.ts'

export interface TsigKey {
  name: string
  secret: Buffer
}

const TYPE_TSIG = 250
const CLASS_ANY = 255
const FUDGE_SECONDS = 300
const ALGORITHM = encodeName('hmac-sha256')
const NOERROR = 0

/** The message with the signature appended, and the signature that the answer's is chained to. */
export function sign(message: Buffer, key: TsigKey, nowSeconds: number): { message: Buffer; mac: Buffer } {
  const timers = timersOf(nowSeconds, FUDGE_SECONDS)
  const mac = hmac(key, [message, variables(key, timers, Buffer.alloc(4))])
  const name = encodeName(key.name)
  const id = message.subarray(0, 2)
  const data = Buffer.concat([ALGORITHM, timers, uint16(mac.length), mac, id, uint16(NOERROR), uint16(0)])
  const fixed = Buffer.concat([uint16(TYPE_TSIG), uint16(CLASS_ANY), Buffer.alloc(4), uint16(data.length)])
  const signed = Buffer.concat([message, name, fixed, data])
  signed.writeUInt16BE(signed.readUInt16BE(10) + 1, 10)
  return { message: signed, mac }
}

/**
 * Takes the messages of one answer in order and returns each without its signature. Of a transfer every message
 * must be vouched for by a signature on it or on a later one; `finish` fails if the last was not.
 */
export function createVerifier(key: TsigKey, requestMac: Buffer, now: () => number) {
  let mac = requestMac
  let unsigned: Buffer[] = []
  let first = true
  return {
    check(message: Buffer): Buffer {
      const found = findTsig(message)
      if (!found) {
        if (first) throw unproven()
        unsigned.push(message)
        return message
      }
      const { tsig, bare } = found
      if (tsig.error !== NOERROR) throw refusedBy(tsig.error)
      if (tsig.name !== normaliseName(key.name)) throw unproven()
      const timed = first ? variables(key, tsig.timers, tsig.tail) : tsig.timers
      const expected = hmac(key, [uint16(mac.length), mac, ...unsigned, tsig.original, timed])
      if (expected.length !== tsig.mac.length || !timingSafeEqual(expected, tsig.mac)) throw unproven()
      const signedAt = tsig.timers.readUIntBE(0, 6)
      if (Math.abs(now() / 1000 - signedAt) > FUDGE_SECONDS) throw unproven()
      mac = tsig.mac
      unsigned = []
      first = false
      return bare
    },
    finish() {
      if (unsigned.length > 0 || first) throw unproven()
    },
  }
}

function unproven(): DnsProviderError {
  return new DnsProviderError('refused', 'The answer of the name server is not signed with our key.')
}

function refusedBy(error: number): DnsProviderError {
  const reason = { 16: 'the signature is wrong', 17: 'the key is not known there', 18: 'the clocks differ' }[error]
  return new DnsProviderError('refused', `The name server refused our signature: ${reason ?? `error ${error}`}.`)
}

interface Tsig {
  name: string
  timers: Buffer
  mac: Buffer
  error: number
  /** Error and other data, as they are signed. */
  tail: Buffer
  /** The message as it was when it was signed: the original id, and no TSIG. */
  original: Buffer
}

function findTsig(message: Buffer): { tsig: Tsig; bare: Buffer } | null {
  try {
    const start = lastRecord(message)
    if (start === null) return null
    const nameEnd = skipName(message, start)
    if (message.readUInt16BE(nameEnd) !== TYPE_TSIG) return null
    return readTsig(message, start, nameEnd)
  } catch (cause) {
    throw new DnsProviderError('server_error', 'The name server answered with a malformed message.', { cause })
  }
}

function readTsig(message: Buffer, start: number, nameEnd: number): { tsig: Tsig; bare: Buffer } {
  const timersAt = skipName(message, nameEnd + 10)
  const macBytes = message.readUInt16BE(timersAt + 8)
  const macEnd = timersAt + 10 + macBytes
  const bare = Buffer.from(message.subarray(0, start))
  bare.writeUInt16BE(bare.readUInt16BE(10) - 1, 10)
  const original = Buffer.from(bare)
  message.copy(original, 0, macEnd, macEnd + 2)
  return {
    bare,
    tsig: {
      name: readPlainName(message, start),
      timers: message.subarray(timersAt, timersAt + 8),
      mac: message.subarray(timersAt + 10, macEnd),
      error: message.readUInt16BE(macEnd + 2),
      tail: message.subarray(macEnd + 2, macEnd + 6 + message.readUInt16BE(macEnd + 4)),
      original,
    },
  }
}

/** Where the last record of the message starts, or null if there is none. Throws past the end. */
function lastRecord(message: Buffer): number | null {
  let at = 12
  for (let left = message.readUInt16BE(4); left > 0; left--) at = skipName(message, at) + 4
  const records = message.readUInt16BE(6) + message.readUInt16BE(8) + message.readUInt16BE(10)
  let start: number | null = null
  for (let left = records; left > 0; left--) {
    start = at
    const fixed = skipName(message, at)
    at = fixed + 10 + message.readUInt16BE(fixed + 8)
  }
  return message.readUInt16BE(10) > 0 ? start : null
}

function skipName(message: Buffer, start: number): number {
  for (let at = start; ; ) {
    const length = message.readUInt8(at)
    if (length === 0) return at + 1
    if (length >= 0xc0) return at + 2
    at += length + 1
  }
}

/** The name of a TSIG record is never compressed. */
function readPlainName(message: Buffer, start: number): string {
  const labels: string[] = []
  for (let at = start; message.readUInt8(at) !== 0; at += message.readUInt8(at) + 1) {
    labels.push(message.toString('latin1', at + 1, at + 1 + message.readUInt8(at)))
  }
  return normaliseName(labels.join('.'))
}

function variables(key: TsigKey, timers: Buffer, tail: Buffer): Buffer {
  return Buffer.concat([
    encodeName(normaliseName(key.name)),
    uint16(CLASS_ANY),
    Buffer.alloc(4),
    ALGORITHM,
    timers,
    tail,
  ])
}

function timersOf(seconds: number, fudge: number): Buffer {
  const timers = Buffer.alloc(8)
  timers.writeUIntBE(seconds, 0, 6)
  timers.writeUInt16BE(fudge, 6)
  return timers
}

function hmac(key: TsigKey, parts: Buffer[]): Buffer {
  const digest = createHmac('sha256', key.secret)
  for (const part of parts) digest.update(part)
  return digest.digest()
}

function uint16(value: number): Buffer {
  return Buffer.of(value >> 8, value & 0xff)
}
