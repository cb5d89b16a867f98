// Which algorithm hashes and compares blocks fastest depends on the processor: with SHA instructions SHA-256 takes half
// the time of BLAKE2b, with carry-less multiplication a GMAC a tenth.
import { randomBytes } from 'node:crypto'
import { BLOCK_BYTES, type BlockHash, createHasher } from '../format/format.ts'
import { createGmac, GMAC_KEY_BYTES } from '../format/gmac.ts'
import { STRETCH_BYTES } from './block-prints.ts'

const BLOCKS = 8
/** The best of so many counts: what disturbs one does not disturb all. */
const TRIALS = 12
/** Worth leaving the usual one for. */
const CLEARLY_FASTER = 1.2
/** What has changed is both printed and named. */
const MUCH_FASTER = 4

/** For all of so many blocks, done in parts of that size. */
function timeFor(work: (part: Buffer) => unknown, partBytes: number): number {
  const part = Buffer.alloc(partBytes, 1)
  const trial = () => {
    const begun = performance.now()
    for (let done = 0; done < BLOCKS * BLOCK_BYTES; done += partBytes) work(part)
    return performance.now() - begun
  }
  return Math.min(...Array.from({ length: TRIALS }, trial))
}

const timeToName = (blockHash: BlockHash) => timeFor(createHasher(blockHash), BLOCK_BYTES)

let fastest: BlockHash | undefined

/** Both are safe. It is tried once: a process stays on its machine. */
export function fastestBlockHash(): BlockHash {
  fastest ??= timeToName('sha-256') * CLEARLY_FASTER < timeToName('blake2b-256') ? 'sha-256' : 'blake2b-256'
  return fastest
}

/** Whether telling by prints what has not changed saves more than making prints costs, and so for spans. */
export function areGmacsWorthwhile(blockHash: BlockHash): boolean {
  return timeFor(createGmac(randomBytes(GMAC_KEY_BYTES)), STRETCH_BYTES) * MUCH_FASTER < timeToName(blockHash)
}
