// What a restore will read from the off-site copy, found before the first of it is: so it comes pack by pack, and only
// that.
import { wholeIn } from '../blocks/prior-blocks.ts'
import { eachWrite } from '../format/block-runs.ts'
import { expectBlock, type PackSource } from '../store/decode-pack.ts'
import { type PlanRequest, planRestore, type Step } from './restore-plan.ts'

/** From here on it is worth having every thread ready when the first pack has come (`npm run bench -- offsite`). */
const MUCH_BYTES = 64 * 1024 * 1024

/** `isLinked`: whether the entry becomes a further name of another one. */
export async function expectRestore(
  source: PackSource,
  request: PlanRequest,
  isLinked: (hardLink: string) => boolean,
): Promise<void> {
  const { index, blobs } = source.repository
  if (blobs.away().next().done) return
  let bytes = 0
  await planRestore(request, (step) => {
    if (step.kind === 'remove' || !isBuilt(step) || (step.wanted.hardLink !== null && isLinked(step.wanted.hardLink)))
      return undefined
    const { content, sizeBytes } = step.wanted
    if (bytes < MUCH_BYTES && bytes + sizeBytes >= MUCH_BYTES) source.pool.prepare()
    bytes += sizeBytes
    const expect = ({ idAt }: { idAt: number }) => {
      const block = index.findAny(content, idAt)
      if (block >= 0) expectBlock(source, index.place(block))
    }
    eachWrite(step.wanted, expect, wholeIn(index, content))
    return undefined
  })
  source.fetch.start()
}

/** Of a file that may be what it was, only what turns out to differ is fetched. */
function isBuilt(step: Exclude<Step, { kind: 'remove' }>): boolean {
  if (step.wanted.kind !== 'file') return false
  if (step.kind !== 'compare') return true
  const { size, nlink } = step.live.stats
  return Number(size) !== step.wanted.sizeBytes || nlink !== 1n
}
