// Changes that know nothing of a format: bits, bytes, numbers at their limits, pieces cut out, doubled, moved and borrowed.
import type { Random } from '../faults/history/random.ts'

type Mutation = (input: Buffer, random: Random, others: readonly Buffer[], words: readonly string[]) => Buffer

export const INPUT_BYTES_MAX = 64 * 1024
const LIMITS = [0, 1, 127, 128, 255, 256, 511, 512, 4095, 4096, 32_767, 32_768, 65_535, 65_536, 2 ** 31 - 1, 2 ** 31]
const NUMBERS = ['0', '-1', '1', '255', '65536', '2147483648', '4294967296', '9007199254740993', '1e9', '00', '+1']

const splice = (input: Buffer, at: number, removed: number, inserted: Uint8Array) =>
  Buffer.concat([input.subarray(0, at), inserted, input.subarray(at + removed)])
const place = (input: Buffer, random: Random) => random.int(input.length + 1)
const piece = (input: Buffer, random: Random) => {
  const start = place(input, random)
  return input.subarray(start, start + 1 + random.int(random.chance(0.2) ? 2048 : 32))
}

function overwrite(input: Buffer, random: Random, write: (copy: Buffer, at: number) => void, width: number): Buffer {
  if (input.length < width) return Buffer.concat([input, random.bytes(width)])
  const copy = Buffer.from(input)
  write(copy, random.int(copy.length - width + 1))
  return copy
}

const MUTATIONS: readonly Mutation[] = [
  (input, random) => overwrite(input, random, (copy, at) => (copy[at] = (copy[at] ?? 0) ^ (1 << random.int(8))), 1),
  (input, random) => overwrite(input, random, (copy, at) => (copy[at] = random.int(256)), 1),
  (input, random) => overwrite(input, random, (copy, at) => copy.writeUInt16LE(random.pick(LIMITS) & 0xffff, at), 2),
  (input, random) => overwrite(input, random, (copy, at) => copy.writeUInt16BE(random.pick(LIMITS) & 0xffff, at), 2),
  (input, random) => overwrite(input, random, (copy, at) => copy.writeUInt32LE(random.pick(LIMITS), at), 4),
  (input, random) => overwrite(input, random, (copy, at) => copy.writeUInt32BE(random.pick(LIMITS), at), 4),
  (input, random) => splice(input, place(input, random), 1 + random.int(32), Buffer.alloc(0)),
  (input, random) => splice(input, place(input, random), 0, random.bytes(1 + random.int(16))),
  (input, random) => splice(input, place(input, random), 0, piece(input, random)),
  (input, random) => splice(input, place(input, random), random.int(32), piece(input, random)),
  (input, random) => {
    const repeated = piece(input, random).subarray(0, 64)
    return splice(input, place(input, random), 0, Buffer.concat(Array(1 + random.int(64)).fill(repeated)))
  },
  (input, random, others) => splice(input, place(input, random), random.int(64), piece(random.pick(others), random)),
  (input, random, others) => {
    const other = random.pick(others)
    return Buffer.concat([input.subarray(0, place(input, random)), other.subarray(place(other, random))])
  },
  (input, random) => input.subarray(0, place(input, random)),
  (input, random, _others, words) =>
    splice(input, place(input, random), random.int(8), Buffer.from(random.pick([...NUMBERS, ...words]), 'latin1')),
]

export function mutated(input: Buffer, random: Random, others: readonly Buffer[], words: readonly string[]): Buffer {
  let result = input
  for (let changes = 1 + random.int(random.chance(0.3) ? 12 : 3); changes > 0; changes--)
    result = random.pick(MUTATIONS)(result, random, others, words)
  return result.subarray(0, INPUT_BYTES_MAX)
}
