// Sortable ids: 48 bits of time and 80 random bits in Crockford's base 32, so that ids made later sort later.
import { hash, randomFillSync } from 'node:crypto'

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const TIME_LENGTH = 10
const RANDOM_LENGTH = 16
/** The last two digits count up within a millisecond; the rest is text that is made once. */
const STEM_LENGTH = RANDOM_LENGTH - 2
const PAIRS = [...ALPHABET].flatMap((high) => [...ALPHABET].map((low) => high + low))

let lastTime = 0
let stem = ''
let pair = 0
const random = new Uint8Array(RANDOM_LENGTH)
/** Asking the system for a few bytes costs as much as asking for many. */
const pool = new Uint8Array(RANDOM_LENGTH * 256)
let taken = pool.length

export type IdPrefix =
  | 'srv'
  | 'bkp'
  | 'sub'
  | 'act'
  | 'tok'
  | 'upl'
  | 'job'
  | 'req'
  | 'trs'
  | 'sch'
  | 'run'
  | 'ses'
  | 'inv'

/** Ids made by one process are strictly increasing, also within a millisecond. */
export function newId<P extends IdPrefix>(prefix: P, now = Date.now()): `${P}_${string}` {
  if (now > lastTime) {
    lastTime = now
    refill()
  } else if (++pair === PAIRS.length) {
    pair = 0
    increment()
  }
  return `${prefix}_${stem}${PAIRS[pair]}`
}

/** For what can be told twice: the same time and seed always make the same id. */
export function derivedId<P extends IdPrefix>(prefix: P, at: number, seed: string): `${P}_${string}` {
  const digits = hash('sha256', seed, 'buffer').subarray(0, RANDOM_LENGTH)
  return `${prefix}_${timeDigits(at)}${[...digits].map((byte) => ALPHABET[byte & 31]).join('')}`
}

/** When an id was made, in milliseconds; undefined where it is none with that prefix. */
export function timeOfId(prefix: IdPrefix, id: string): number | undefined {
  const digits = [...id.slice(prefix.length + 1)].map((digit) => ALPHABET.indexOf(digit))
  if (!id.startsWith(`${prefix}_`) || digits.length !== TIME_LENGTH + RANDOM_LENGTH || digits.includes(-1))
    return undefined
  return digits.slice(0, TIME_LENGTH).reduce((time, digit) => time * 32 + digit, 0)
}

function refill(): void {
  if (taken === pool.length) {
    randomFillSync(pool)
    taken = 0
  }
  for (let i = 0; i < RANDOM_LENGTH; i++) random[i] = (pool[taken++] ?? 0) & 31
  pair = (random[STEM_LENGTH] ?? 0) * 32 + (random[STEM_LENGTH + 1] ?? 0)
  stem = stemOf(lastTime)
}

function timeDigits(at: number): string {
  let text = ''
  for (let i = 0, time = at; i < TIME_LENGTH; i++, time = Math.floor(time / 32)) text = ALPHABET[time % 32] + text
  return text
}

function stemOf(at: number): string {
  let text = timeDigits(at)
  for (let i = 0; i < STEM_LENGTH; i++) text += ALPHABET[random[i] ?? 0]
  return text
}

function increment(): void {
  let i = STEM_LENGTH - 1
  while (i >= 0 && random[i] === 31) random[i--] = 0
  if (i < 0) lastTime++
  else random[i] = (random[i] ?? 0) + 1
  stem = stemOf(lastTime)
}
