// Zips that are unpacked: honest ones, with what their headers say changed field by field.
import { crc32 } from 'node:zlib'
import { zipOf } from '../../../src/agent/files/archives/spoiled.testing.ts'
import type { Random } from '../../faults/history/random.ts'
import { closeHouse, honestArchives, tryUnpacking } from './unpacking.testing.ts'

export const covers = ['/src/agent/files/archives/']
export const dictionary = ['PK\x01\x02', 'PK\x03\x04', 'PK\x05\x06', 'PK\x06\x06', 'PK\x06\x07', '../', '/', '\\', '\0']

const LIMITS = [0, 1, 8, 29, 30, 46, 0x7fff, 0xffff, 0x7fffffff, 0xfffffffe, 0xffffffff]
/** Where the fields of a record are: those of two bytes, and those of four. */
const RECORDS = [
  { signature: 'PK\x03\x04', shorts: [6, 8, 26, 28], longs: [14, 18, 22] },
  { signature: 'PK\x01\x02', shorts: [4, 8, 10, 28, 30, 32], longs: [16, 20, 24, 38, 42] },
  { signature: 'PK\x05\x06', shorts: [8, 10, 20], longs: [12, 16] },
  { signature: 'PK\x06\x06', shorts: [], longs: [4, 24, 32, 40, 44, 48, 52] },
]

const honest = await honestArchives('zip')

export const seeds = () => [
  ...honest,
  zipOf(
    [
      { name: 'a', data: 'x' },
      { name: 'b/c', data: 'y' },
    ],
    { crcOf: (data) => crc32(data), order: [1, 0] },
  ),
  zipOf(
    [
      { name: 'a\\b\\', data: '' },
      { name: 'a\\b\\c', data: 'z' },
    ],
    { crcOf: (data) => crc32(data) },
  ),
]

/** One field of one record becomes a number at a limit, another field's, or one that is near. */
export function mutate(input: Buffer, random: Random): Buffer {
  const copy = Buffer.from(input)
  const { signature, shorts, longs } = random.pick(RECORDS)
  const places: number[] = []
  for (let at = copy.indexOf(signature, 0, 'latin1'); at !== -1; at = copy.indexOf(signature, at + 4, 'latin1'))
    places.push(at)
  if (places.length === 0) return copy
  const offset = random.pick([...shorts, ...longs])
  const width = shorts.includes(offset) ? 2 : 4
  const at = random.pick(places) + offset
  if (at + width > copy.length) return copy
  const was = copy.readUIntLE(at, width)
  const value = random.chance(0.5) ? random.pick(LIMITS) : was + random.int(9) - 4
  copy.writeUIntLE(Math.max(0, value) % 2 ** (8 * width), at, width)
  return copy
}

export const run = tryUnpacking
export const close = closeHouse
