// Copies of many small blobs in one, for whoever reads a whole store over a network: one request in place of hundreds. It is
// a help and not data: each blob is also there under its own name.
import { asBuffer } from '../../../kit/bytes.ts'
import { BUNDLE_MAGIC, Damage, digest, ID_BYTES, MAGIC_BYTES } from './format.ts'

const HEAD_BYTES = MAGIC_BYTES + 4 + ID_BYTES
/** More than a table has. */
export const BUNDLE_HEAD_BYTES = 64 * 1024

export interface BundledBlob {
  name: string
  bytes: Uint8Array
}

interface Row {
  name: string
  sizeBytes: number
  /** Of its bytes, in hexadecimal. */
  digest: string
}

export function encodeBundle(blobs: readonly BundledBlob[]): Buffer {
  const rows: Row[] = blobs.map(({ name, bytes }) => ({
    name,
    sizeBytes: bytes.length,
    digest: digest(bytes).toString('hex'),
  }))
  const table = Buffer.from(JSON.stringify(rows))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(table.length)
  return Buffer.concat([Buffer.from(BUNDLE_MAGIC), length, digest(table), table, ...blobs.map(({ bytes }) => bytes)])
}

/** The names of what is in a bundle, of which these are the first bytes. Throws Damage. */
export const namesInBundle = (bundle: string, head: Uint8Array): string[] =>
  readTable(bundle, asBuffer(head)).rows.map(({ name }) => name)

/** Those that are what was written. Throws Damage where that cannot be told. */
export function decodeBundle(bundle: string, bytes: Uint8Array): BundledBlob[] {
  const whole = asBuffer(bytes)
  const { rows, end } = readTable(bundle, whole)
  const blobs: BundledBlob[] = []
  let at = end
  for (const { name, sizeBytes, digest: expected } of rows) {
    const blob = whole.subarray(at, at + sizeBytes)
    at += sizeBytes
    if (digest(blob).toString('hex') === expected) blobs.push({ name, bytes: blob })
  }
  return blobs
}

function readTable(bundle: string, bytes: Buffer): { rows: Row[]; end: number } {
  if (bytes.length < HEAD_BYTES || bytes.toString('latin1', 0, MAGIC_BYTES) !== BUNDLE_MAGIC)
    throw new Damage(bundle, 'does not begin as a bundle does')
  const end = HEAD_BYTES + bytes.readUInt32LE(MAGIC_BYTES)
  const table = bytes.subarray(HEAD_BYTES, end)
  if (!digest(table).equals(bytes.subarray(MAGIC_BYTES + 4, HEAD_BYTES)))
    throw new Damage(bundle, 'its table is damaged')
  return { rows: JSON.parse(table.toString()) as Row[], end }
}
