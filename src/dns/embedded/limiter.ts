// Response rate limiting: a server that answers anyone's UDP can be made to flood whoever the sender claims to be.
import { randomInt } from 'node:crypto'

/** `slip`: answer "ask again over TCP", which only someone who really is at that address can do. */
export type Verdict = 'answer' | 'slip' | 'drop'

const SLOTS = 1 << 16
/** Every second limited response is a slip: a real client gets through, a victim gets half and nothing larger. */
const SLIP_EVERY = 2

/**
 * Counts responses a second for each network (/24 or /56, since an attacker has the whole of it). The table has a
 * fixed size, so nobody can grow it; two networks that share a slot share a budget, and which ones do is random.
 */
export function createLimiter(options: { perSecond: number; now?: () => number; seed?: number }) {
  const now = options.now ?? Date.now
  const seconds = new Uint32Array(SLOTS)
  const counts = new Uint32Array(SLOTS)
  const seed = options.seed ?? randomInt(2 ** 31)

  return function judge(address: string): Verdict {
    if (options.perSecond === 0) return 'answer'
    const slot = hashNetwork(address, seed) & (SLOTS - 1)
    const second = Math.floor(now() / 1000) >>> 0
    if (seconds[slot] !== second) {
      seconds[slot] = second
      counts[slot] = 0
    }
    const count = (counts[slot] as number) + 1
    counts[slot] = count
    if (count <= options.perSecond) return 'answer'
    return (count - options.perSecond) % SLIP_EVERY === 0 ? 'slip' : 'drop'
  }
}

const DOT = 0x2e
const COLON = 0x3a

/** The first three numbers of an IPv4 address; the first three groups and a half of an IPv6 address. */
function hashNetwork(address: string, seed: number): number {
  let hash = seed
  let groups = 0
  const end = address.startsWith('::ffff:') ? 7 : 0
  for (let at = end; at < address.length; at++) {
    const code = address.charCodeAt(at)
    if (code === DOT && ++groups === 3) break
    if (code === COLON && ++groups === 3) {
      hash = mix(hash, Number.parseInt(address.slice(at + 1, at + 5), 16) >> 8)
      break
    }
    hash = mix(hash, code)
  }
  hash ^= hash >>> 15
  return hash >>> 0
}

function mix(hash: number, value: number): number {
  return Math.imul(hash ^ value, 0x01000193)
}
