// Decisions that a seed repeats. Every client draws from a stream of its own, so that what one decides does not depend on
// how fast another is.
export interface Random {
  /** From 0 up to, and without, `max`. */
  int(max: number): number
  chance(probability: number): boolean
  pick<T>(list: readonly T[]): T
  /** What does not compress. */
  bytes(length: number): Buffer
  /** A stream of its own: the same name gives the same one. */
  fork(name: string): Random
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0
  // mulberry32
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const int = (max: number) => Math.floor(next() * max)
  return {
    int,
    chance: (probability) => next() < probability,
    pick<T>(list: readonly T[]): T {
      if (list.length === 0) throw new RangeError('nothing to pick from')
      return list[int(list.length)] as T
    },
    bytes(length) {
      const words = new Uint32Array(Math.ceil(length / 4))
      for (let index = 0; index < words.length; index++) words[index] = int(2 ** 32)
      return Buffer.from(words.buffer, 0, length)
    },
    fork: (name) => createRandom(hash(`${seed} ${name}`)),
  }
}

function hash(text: string): number {
  let value = 0x811c9dc5
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01000193) >>> 0
  return value
}
