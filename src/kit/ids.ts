// Sortable ids: 48 bits of time and 80 random bits in Crockford's base 32, so that ids made later sort later.
import { randomFillSync } from 'node:crypto'

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const TIME_LENGTH = 10
const RANDOM_LENGTH = 16

let lastTime = 0
const random = new Uint8Array(RANDOM_LENGTH)
/** Asking the system for a few bytes costs as much as asking for many. */
const pool = new Uint8Array(RANDOM_LENGTH * 256)
let taken = pool.length
let timeText = ''

export type IdPrefix = 'srv' | 'bkp' | 'sub' | 'act' | 'tok' | 'upl' | 'job' | 'req' | 'trs' | 'sch'

/** Ids made by one process are strictly increasing, also within a millisecond. */
export function newId<P extends IdPrefix>(prefix: P, now = Date.now()): `${P}_${string}` {
  if (now > lastTime) {
    lastTime = now
    timeText = encodeTime(now)
    refill()
  } else {
    increment()
  }
  let text = timeText
  for (let i = 0; i < RANDOM_LENGTH; i++) text += ALPHABET[random[i] ?? 0]
  return `${prefix}_${text}`
}

function encodeTime(at: number): string {
  let text = ''
  let time = at
  for (let i = 0; i < TIME_LENGTH; i++) {
    text = ALPHABET[time % 32] + text
    time = Math.floor(time / 32)
  }
  return text
}

function refill(): void {
  if (taken === pool.length) {
    randomFillSync(pool)
    taken = 0
  }
  for (let i = 0; i < RANDOM_LENGTH; i++) random[i] = (pool[taken++] ?? 0) & 31
}

function increment(): void {
  for (let i = RANDOM_LENGTH - 1; i >= 0; i--) {
    const digit = random[i] ?? 0
    if (digit < 31) {
      random[i] = digit + 1
      return
    }
    random[i] = 0
  }
  lastTime++
  timeText = encodeTime(lastTime)
}
