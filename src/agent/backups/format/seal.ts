// Names, compresses and, where the store has a key, encrypts bytes. Everything that a store holds passes through here.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import { constants, crc32, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { asBuffer, freeMemory } from '../../../kit/bytes.ts'
import { BLOCK_HASHES, type BlockHash, createHasher, ID_BYTES } from './format.ts'
import { trimmedBound, trimSectors, untrimSectors } from './sectors.ts'

const SALT_BYTES = 16
const NONCE_BYTES = 12
const TAG_BYTES = 16
export const SEAL_OVERHEAD = SALT_BYTES + NONCE_BYTES + TAG_BYTES

/** How bytes are stored. Bit 0: compressed with zstd. Bit 1: encrypted. Bit 2: sectors without the zeros at their ends. */
export const CODEC_ZSTD = 1
const CODEC_SEALED = 2
const CODEC_TRIMMED = 4
/** Zeros that nobody wants, between what has to begin at a certain place. They are in the clear. */
export const CODEC_FILLER = 8
/** The list of a pack's spans, in the clear. */
export const CODEC_SPANS = 16

/** Measured on region files: level 3 costs a quarter more than level 1 and saves 1 % of space. */
const LEVEL = { [constants.ZSTD_c_compressionLevel]: 1 }
const PIECE_BYTES = 256
const PIECES = 4
/** Of random bytes it would be 255, give or take 23; at this value their entropy is about 2 % short of full. */
const DENSE = 400
/** Compression must save at least this share, or the time to undo it is not worth the space. */
const WORTH = 0.97
/** Buffers of this size and larger share their memory with no others. */
const OWN_BYTES = Buffer.poolSize >>> 1

export interface Sealer {
  readonly isEncrypted: boolean
  /** The name of a block: keyed where the store is encrypted, so that it tells nothing about the content. */
  idOf(block: Uint8Array): Buffer
  /** As `idOf`, written to where it is to stand. */
  nameTo(target: Buffer, at: number, block: Uint8Array): void
  /**
   * `isDoubtful`: what came before did not shrink much, so a look at it decides whether to try. What comes out may be in
   * `into`, or the bytes that went in.
   */
  encode(raw: Uint8Array, isDoubtful?: boolean, into?: Buffer): Encoded
  /**
   * Throws where the bytes are not what `encode` made. The caller checks what comes out by its name or digest, or what goes in by its span; only
   * `isStrict` also finds changed bits that change nothing. What comes out may be in `into` or part of `stored`.
   */
  decode(stored: Uint8Array, encoded: Omit<Encoded, 'bytes'>, isStrict?: boolean, into?: Buffer): Uint8Array
}

export interface Encoded {
  bytes: Uint8Array
  codec: number
  rawLength: number
  /** Over the stored bytes, where they were compressed: decompression alone overlooks some changed bits. */
  crc: number
}

export function createSealer(key: Uint8Array | null, blockHash: BlockHash): Sealer {
  const keys = key ? deriveKeys(key) : null
  const algorithm = BLOCK_HASHES[blockHash]
  const nameOf = keys
    ? (block: Uint8Array) => createHmac(algorithm, keys.names).update(block).digest('latin1')
    : createHasher(blockHash)
  const nameTo = (target: Buffer, at: number, block: Uint8Array) =>
    void target.write(nameOf(block), at, ID_BYTES, 'latin1')
  const seal = keys ? (bytes: Uint8Array) => encrypt(keys.content, bytes) : null
  return {
    isEncrypted: keys !== null,
    nameTo,
    idOf(block) {
      const id = Buffer.allocUnsafeSlow(ID_BYTES)
      nameTo(id, 0, block)
      return id
    },
    encode(raw, isDoubtful = false, into = undefined) {
      const { bytes, codec } = pack(raw, isDoubtful, into)
      if (seal) return { bytes: seal(bytes), codec: codec | CODEC_SEALED, rawLength: raw.length, crc: 0 }
      return { bytes, codec, rawLength: raw.length, crc: codec === CODEC_ZSTD ? crc32(bytes) : 0 }
    },
    decode(stored, { codec, rawLength, crc }, isStrict = true, into = undefined) {
      if (((codec & CODEC_SEALED) !== 0) !== (keys !== null))
        throw new Error('encrypted with another key, or not at all')
      const bytes = keys ? decrypt(keys.content, stored) : stored
      if ((codec & CODEC_TRIMMED) !== 0) {
        const raw = into ? into.subarray(0, rawLength) : Buffer.allocUnsafeSlow(rawLength)
        untrimSectors(asBuffer(bytes), raw)
        return raw
      }
      if ((codec & CODEC_ZSTD) === 0) {
        if (bytes.length !== rawLength) throw new Error('not as long as it was')
        return bytes
      }
      if (isStrict && !keys && crc32(bytes) !== crc) throw new Error('the checksum differs')
      return decompress(bytes, rawLength, into)
    },
  }
}

function decompress(bytes: Uint8Array, rawLength: number, into: Buffer | undefined): Uint8Array {
  const raw = zstdDecompressSync(bytes, {
    // One more than there is: where it is full, Node makes another one to go on with.
    chunkSize: Math.max(OWN_BYTES, rawLength + 1),
    maxOutputLength: Math.max(64, rawLength),
  })
  if (raw.length !== rawLength) throw new Error('not as long as it was')
  return takeOut(raw, into)
}

function pack(raw: Uint8Array, isDoubtful: boolean, into: Buffer | undefined): { bytes: Uint8Array; codec: number } {
  if (raw.length < 64) return { bytes: raw, codec: 0 }
  if (isDoubtful && raw.length > 2 * PIECE_BYTES * PIECES) {
    const bound = trimmedBound(raw.length)
    const trimmed = trimSectors(asBuffer(raw), into ?? Buffer.allocUnsafeSlow(bound))
    const content = trimmed.subarray(bound - raw.length)
    if (content.length > PIECE_BYTES * PIECES && isDense(content)) {
      const isSmaller = trimmed.length < raw.length * WORTH
      return isSmaller ? { bytes: trimmed, codec: CODEC_TRIMMED } : { bytes: raw, codec: 0 }
    }
  }
  const packed = zstd(raw)
  if (packed.length < raw.length * WORTH) return { bytes: takeOut(packed, into), codec: CODEC_ZSTD }
  giveBack(packed)
  return { bytes: raw, codec: 0 }
}

/** The size told in advance lets zstd choose small tables: nearly twice as fast for a block. */
function zstd(raw: Uint8Array): Buffer {
  return zstdCompressSync(raw, {
    params: LEVEL,
    pledgedSrcSize: raw.length,
    chunkSize: Math.max(OWN_BYTES, raw.length + 1024),
  })
}

/**
 * Node holds what it has compressed or decompressed into until the collector goes through everything, which it rarely does
 * in a thread that makes little: 60 MB in each (`npm run bench -- backups-scale`). So it is copied, and its memory given back.
 */
function takeOut(bytes: Buffer, into: Buffer | undefined): Buffer {
  const taken =
    into && into.length >= bytes.length ? into.subarray(0, bytes.length) : Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(taken)
  giveBack(bytes)
  return taken
}

/** What has at least `OWN_BYTES` to be filled is in nobody else's memory. */
const giveBack = ({ buffer }: Buffer) => freeMemory(buffer)

const VALUES = 256
const histogram = new Uint32Array(VALUES)
const sample = Buffer.alloc(PIECES * PIECE_BYTES)

/**
 * Whether zstd would save next to nothing. Pieces from all over are looked at, since a region file's sectors differ: where
 * every byte is about as common as any other, by a chi-squared test, they have been compressed already.
 */
function isDense(bytes: Buffer): boolean {
  const stride = Math.floor((bytes.length - PIECE_BYTES) / (PIECES - 1))
  for (let piece = 0; piece < PIECES; piece++)
    bytes.copy(sample, piece * PIECE_BYTES, piece * stride, piece * stride + PIECE_BYTES)
  histogram.fill(0)
  let pairs = 0
  for (let at = 0; at < sample.length; at++) {
    const byte = sample[at] ?? 0
    const count = histogram[byte] ?? 0
    histogram[byte] = count + 1
    pairs += count
  }
  // The sum of the squares of the counts.
  const squares = 2 * pairs + sample.length
  return (squares * VALUES) / sample.length - sample.length < DENSE
}

function deriveKeys(key: Uint8Array) {
  if (key.length !== 32) throw new Error('a backup key has 32 bytes')
  const derive = (use: string) => Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), `gamekeeper backups ${use}`, 32))
  return { names: derive('names'), content: derive('content'), check: derive('check') }
}

/** Lets a wrong key be told from a damaged store. */
export function keyCheckOf(key: Uint8Array | null): string | null {
  return key && createHmac('sha256', deriveKeys(key).check).update('gamekeeper').digest('hex')
}

/**
 * Each piece has a key of its own from 128 random bits, and a random nonce besides: no two pieces share the pair however
 * many there are, and no state has to survive a crash.
 */
function encrypt(contentKey: Buffer, bytes: Uint8Array): Uint8Array {
  const head = randomBytes(SALT_BYTES + NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', pieceKey(contentKey, head), head.subarray(SALT_BYTES))
  return Buffer.concat([head, cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
}

function decrypt(contentKey: Buffer, stored: Uint8Array): Uint8Array {
  if (stored.length < SEAL_OVERHEAD) throw new Error('too short to be encrypted')
  const head = stored.subarray(0, SALT_BYTES + NONCE_BYTES)
  const decipher = createDecipheriv('aes-256-gcm', pieceKey(contentKey, head), head.subarray(SALT_BYTES), {
    authTagLength: TAG_BYTES,
  })
  decipher.setAuthTag(stored.subarray(stored.length - TAG_BYTES))
  const bytes = decipher.update(stored.subarray(head.length, stored.length - TAG_BYTES))
  decipher.final()
  return bytes
}

function pieceKey(contentKey: Buffer, head: Uint8Array): Buffer {
  return createHmac('sha256', contentKey).update(head.subarray(0, SALT_BYTES)).digest()
}

export function sameId(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b)
}
