// A name on a Linux disk is any bytes but `/` and NUL; a name in JSON is Unicode. Names are therefore carried as strings
// in which each byte that is not part of valid UTF-8 stands as one code point of a private range, U+10FE00 + byte. A
// name that really holds one of those code points has its four bytes escaped the same way, so the encoding is
// reversible for every name. Only bytes 0x80–0xFF are ever escaped: `/`, `.` and NUL cannot be smuggled in.
import { isUtf8 } from 'node:buffer'

const ESCAPE_BASE = 0x10fe00
const ESCAPED = /[\u{10fe80}-\u{10feff}]/u
export const ASCII = /^[ -~]*$/

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** From bytes read as latin1, which is the fastest way that Node has to read names without losing any. */
export function nameFromLatin1(latin1: string): string {
  return ASCII.test(latin1) ? latin1 : nameFromBytes(Buffer.from(latin1, 'latin1'))
}

export function nameFromBytes(bytes: Uint8Array): string {
  try {
    const text = strict.decode(bytes)
    if (!ESCAPED.test(text)) return text
  } catch {
    // Not valid UTF-8: taken apart below.
  }
  return escapeBytes(bytes)
}

/** What to hand to the file system: the string itself where Node's own UTF-8 gives the right bytes, else the bytes. */
export function nameToDisk(name: string): string | Buffer {
  return ESCAPED.test(name) ? nameToBytes(name) : name
}

export function nameToBytes(name: string): Buffer {
  if (!ESCAPED.test(name)) return Buffer.from(name)
  const parts: Buffer[] = []
  for (const char of name) {
    parts.push(ESCAPED.test(char) ? Buffer.of((char.codePointAt(0) ?? 0) - ESCAPE_BASE) : Buffer.from(char))
  }
  return Buffer.concat(parts)
}

function escapeBytes(bytes: Uint8Array): string {
  let name = ''
  for (let at = 0; at < bytes.length; ) {
    const length = sequenceLength(bytes[at] ?? 0)
    const sequence = bytes.subarray(at, at + length)
    const char = isUtf8(sequence) ? strict.decode(sequence) : undefined
    if (char !== undefined && !ESCAPED.test(char)) {
      name += char
      at += length
    } else {
      name += String.fromCodePoint(ESCAPE_BASE + (bytes[at] ?? 0))
      at++
    }
  }
  return name
}

function sequenceLength(lead: number): number {
  if (lead < 0xc0) return 1
  if (lead < 0xe0) return 2
  return lead < 0xf0 ? 3 : 4
}
