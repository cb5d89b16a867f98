// Tars that are unpacked, plain and compressed. The first byte says how; what is compressed here is the tar, since a change
// of compressed bytes is only ever a damaged stream. Checksums of headers are put right, as an attacker would.
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { paxRecord, TAR_END, tarMember } from '../../../src/agent/files/archives/spoiled.testing.ts'
import type { Random } from '../../faults/history/random.ts'
import { closeHouse, honestArchives, tryUnpacking } from './unpacking.testing.ts'

export const covers = ['/src/agent/files/archives/']
export const dictionary = [
  'ustar\x0000',
  'ustar  \0',
  '../',
  '/',
  ' path=',
  ' linkpath=',
  ' size=',
  'GNU.sparse.',
  '\x80\0\0\0',
]

const BLOCK = 512
const TYPES = '01234567gxLKSVDM\0'
const NUMBERS = [0, 1, 511, 512, 513, 4096, 262_144, 262_145, 0o77777777777]
const WAYS = [
  (tar: Buffer) => tar,
  (tar: Buffer) => gzipSync(tar, { level: 1 }),
  (tar: Buffer) => zstdCompressSync(tar),
]

const honest = await honestArchives('tar')
const as = (way: number, ...members: Uint8Array[]) => Buffer.concat([Buffer.of(way), ...members])

export const seeds = () => [
  ...honest.flatMap((tar, index) => [as(0, tar), as(1 + (index % 2), tar)]),
  as(
    0,
    tarMember({ type: 'x' }, Buffer.concat([paxRecord('path', 'a/b'), paxRecord('size', '3')])),
    tarMember({ name: 'f', type: '0' }, Buffer.from('abc')),
    TAR_END,
  ),
  as(0, tarMember({ type: 'L' }, Buffer.from(`${'l/'.repeat(60)}n\0`)), tarMember({ name: 'f', type: '0' }), TAR_END),
  as(0, tarMember({ type: 'K' }, Buffer.from('../x\0')), tarMember({ name: 'd/l', type: '2' }), TAR_END),
  as(3, gzipSync(Buffer.concat([tarMember({ name: 'd', type: '5' }), TAR_END]))),
]

/** A field of a header, a header with what follows left out, doubled or moved. */
export function mutate(input: Buffer, random: Random): Buffer {
  const tar = Buffer.from(input)
  const blocks = Math.floor((tar.length - 1) / BLOCK)
  if (blocks === 0) return tar
  const at = 1 + BLOCK * random.int(blocks)
  const block = Buffer.from(tar.subarray(at, at + BLOCK))
  if (random.chance(0.25)) return Buffer.concat([tar.subarray(0, at), tar.subarray(at + BLOCK)])
  if (random.chance(0.3)) {
    const to = 1 + BLOCK * random.int(blocks)
    return Buffer.concat([tar.subarray(0, to), block, tar.subarray(to)])
  }
  if (random.chance(0.4)) tar.write(random.pick([...TYPES]), at + 156, 'latin1')
  else if (random.chance(0.5)) tar.write(`${random.pick(NUMBERS).toString(8).padStart(11, '0')}\0`, at + 124, 'latin1')
  else
    tar.write(random.pick(['../', '/', 'a/../b', './', 'world', 'w/d']), at + (random.chance(0.5) ? 0 : 157), 'latin1')
  return tar
}

function withChecksums(tar: Buffer): Buffer {
  for (let at = 0; at + BLOCK <= tar.length; at += BLOCK) {
    const block = tar.subarray(at, at + BLOCK)
    if (block.toString('latin1', 257, 262) !== 'ustar') continue
    block.write(' '.repeat(8), 148, 'latin1')
    const sum = block.reduce((total, byte) => total + byte, 0)
    block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  }
  return tar
}

export async function run(input: Buffer): Promise<void> {
  const way = (input[0] ?? 0) % (WAYS.length + 1)
  const rest = input.subarray(1)
  await tryUnpacking(WAYS[way]?.(withChecksums(rest)) ?? rest)
}

export const close = closeHouse
