// The same key with the same request gives the same response for 24 hours. The response is written in the transaction
// of the change, so a crash cannot separate the two, and encrypted with a key derived from the caller's own token: a
// response may contain a new token's value, and nobody else can read it back, not even from a stolen database.
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { sql } from 'kysely'
import type { KeptRequest } from '../../contract/agent.ts'
import { fail } from '../../contract/errors.ts'
import { ANSWER_SMALL_BYTES, LARGE_ANSWERS_MAX_BYTES } from '../../contract/fixed-limits.ts'
import { isUniqueViolation } from '../db/database.ts'
import { DELETE_BATCH, deleteInBatches } from '../db/delete-batches.ts'
import type { Db, Trx } from '../db/tables.ts'

const KEEP_MS = 24 * 3600_000
const RETRY_AFTER_SECONDS = 3600
const KEY = /^[\x21-\x7e]{1,255}$/
const CIPHER = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16
/** Before what was compressed; Base64 has no colon. */
const COMPRESSED = 'zstd:'

export interface KeyedRequest {
  tokenId: string
  /** The value of the token in one spelling, or the proof of the session. */
  credential: string
  key: string
  method: string
  url: string
  body: unknown
}

export interface Idempotency {
  /** Runs `work` once for a key; a repetition, also one that arrives meanwhile, gets the first answer. */
  once(
    request: KeyedRequest,
    work: (remember: Remember, kept: KeptRequest) => Promise<unknown>,
  ): Promise<{ answer: unknown; replayed: boolean }>
  /** For an answer that the caller did not wait for; one that is there already stays. */
  rememberLate(trx: Trx, kept: KeptRequest, answer: unknown): Promise<void>
  purge(): Promise<void>
}

export type Remember = (trx: Trx, answer: unknown) => Promise<void>

export function createIdempotency({ db, clock }: { db: Db; clock: { now(): number } }): Idempotency {
  const underWay = new Map<string, Promise<unknown>>()
  /** What large answers of a token take. It is read anew after each purge; what was rolled back counts until then. */
  const largeBytes = new Map<string, number>()

  /** An answer may have a megabyte, and is in nobody's quota. */
  async function requireRoom(tokenId: string): Promise<void> {
    const bytes = largeBytes.get(tokenId) ?? (await readLargeBytes(tokenId))
    if (bytes < LARGE_ANSWERS_MAX_BYTES) return
    throw fail('rate_limited', {
      detail:
        'Too much is kept already of what was answered to this token under an Idempotency-Key in the last 24 hours.',
      headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
    })
  }

  async function readLargeBytes(tokenId: string): Promise<number> {
    const { bytes } = await db
      .selectFrom('idempotency')
      .select(sql<number | string | null>`sum(octet_length(answer))`.as('bytes'))
      .where('token_id', '=', tokenId)
      // As the index has it, so that it is used.
      .where(sql<boolean>`length(answer) > ${sql.lit(ANSWER_SMALL_BYTES)}`)
      .executeTakeFirstOrThrow()
    largeBytes.set(tokenId, Number(bytes ?? 0))
    return Number(bytes ?? 0)
  }

  function count(tokenId: string, { length }: string): void {
    const known = largeBytes.get(tokenId)
    if (known !== undefined && length > ANSWER_SMALL_BYTES) largeBytes.set(tokenId, known + length)
  }

  async function find(request: KeyedRequest): Promise<{ answer: unknown } | undefined> {
    const row = await db
      .selectFrom('idempotency')
      .select(['fingerprint', 'answer'])
      .where('token_id', '=', request.tokenId)
      .where('key', '=', request.key)
      .where('created_at', '>', clock.now() - KEEP_MS)
      .executeTakeFirst()
    if (!row) return undefined
    if (row.fingerprint !== fingerprintOf(request)) throw conflict()
    return { answer: openAnswer(request, row.answer) }
  }

  async function insert(trx: Trx, { tokenId, key, fingerprint, answerKey }: KeptRequest, answer: unknown) {
    const expired = trx.deleteFrom('idempotency').where('token_id', '=', tokenId).where('key', '=', key)
    await expired.where('created_at', '<=', clock.now() - KEEP_MS).execute()
    const encrypted = encrypt(Buffer.from(answerKey, 'base64'), answer)
    count(tokenId, encrypted)
    return trx.insertInto('idempotency').values({
      token_id: tokenId,
      key,
      fingerprint,
      answer: encrypted,
      created_at: clock.now(),
    })
  }

  return {
    async once(request, work) {
      if (!KEY.test(request.key)) {
        throw fail('invalid_request', 'Idempotency-Key must be 1 to 255 visible ASCII characters.')
      }
      const slot = `${request.tokenId} ${request.key}`
      while (underWay.has(slot)) await underWay.get(slot)
      const done = Promise.withResolvers<void>()
      underWay.set(slot, done.promise)
      try {
        const found = await find(request)
        if (found) return { answer: found.answer, replayed: true }
        await requireRoom(request.tokenId)
        const kept = keptOf(request)
        const remember: Remember = async (trx, answer) => void (await (await insert(trx, kept, answer)).execute())
        return { answer: await work(remember, kept), replayed: false }
      } catch (error) {
        // The first answer was recorded meanwhile, by whoever reads the facts of the agent.
        const found = isUniqueViolation(error) ? await find(request) : undefined
        if (!found) throw error
        return { answer: found.answer, replayed: true }
      } finally {
        underWay.delete(slot)
        done.resolve()
      }
    },

    async rememberLate(trx, kept, answer) {
      const inserted = await insert(trx, kept, answer)
      await inserted.onConflict((conflict) => conflict.doNothing()).execute()
    },

    async purge() {
      const old = db.selectFrom('idempotency').select(['token_id', 'key']).limit(DELETE_BATCH)
      const expired = old.where('created_at', '<=', clock.now() - KEEP_MS)
      await deleteInBatches(() =>
        db
          .deleteFrom('idempotency')
          .where(({ eb, refTuple }) => eb(refTuple('token_id', 'key'), 'in', expired.$asTuple('token_id', 'key')))
          .executeTakeFirst(),
      )
      largeBytes.clear()
    },
  }
}

/** Of two sessions of one token neither can read what the other was answered. */
function openAnswer(request: KeyedRequest, stored: string): unknown {
  try {
    return decrypt(keyOf(request), stored)
  } catch (error) {
    throw fail('idempotency_conflict', 'This Idempotency-Key was used in another session of the token.', error)
  }
}

const conflict = () => fail('idempotency_conflict', 'This Idempotency-Key was used for another request.')

function fingerprintOf({ method, url, body }: KeyedRequest): string {
  return createHash('sha256')
    .update(`${method} ${url}\n${JSON.stringify(body ?? null, inOneOrder)}`)
    .digest('hex')
}

/** A library may write the fields of an object in another order each time: they mean the same. */
function inOneOrder(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function keptOf(request: KeyedRequest): KeptRequest {
  const { tokenId, key } = request
  return { tokenId, key, fingerprint: fingerprintOf(request), answerKey: keyOf(request).toString('base64') }
}

function keyOf({ credential, key }: KeyedRequest): Buffer {
  return Buffer.from(hkdfSync('sha256', credential, key, 'gamekeeper idempotency', 32))
}

function encrypt(key: Buffer, answer: unknown): string {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv(CIPHER, key, iv)
  const plain = Buffer.from(JSON.stringify(answer ?? null))
  const isLarge = plain.length > ANSWER_SMALL_BYTES
  const text = Buffer.concat([cipher.update(isLarge ? zstdCompressSync(plain) : plain), cipher.final()])
  return `${isLarge ? COMPRESSED : ''}${Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64')}`
}

function decrypt(key: Buffer, stored: string): unknown {
  const isCompressed = stored.startsWith(COMPRESSED)
  const bytes = Buffer.from(isCompressed ? stored.slice(COMPRESSED.length) : stored, 'base64')
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, IV_BYTES))
  decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
  const plain = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()])
  return JSON.parse((isCompressed ? zstdDecompressSync(plain) : plain).toString())
}
