// What a restore will read from the off-site copy, found before the first of it is: so it comes pack by pack, and only
// that. The worker threads start meanwhile, and the first packs are on their way before a file is made.
import { eachBlock } from '../format/block-runs.ts'
import { createExpecting, type PackSource } from '../store/decode-pack.ts'
import { type PlanRequest, planRestore, type Step } from './restore-plan.ts'

/** What keeps a thread busy for longer than it takes to start. */
const BYTES_A_THREAD = 16 * 1024 * 1024

/** `isLinked`: whether the entry becomes a further name of another one. */
export async function expectRestore(
  source: PackSource,
  request: PlanRequest,
  isLinked: (hardLink: string) => boolean,
): Promise<void> {
  if (source.repository.blobs.away().next().done) return
  source.pool.warm(Math.ceil(request.manifest.meta.sizeBytes / BYTES_A_THREAD))
  const expect = createExpecting(source)
  await planRestore(request, (step) => {
    if (step.kind === 'remove' || !isBuilt(step) || (step.wanted.hardLink !== null && isLinked(step.wanted.hardLink)))
      return undefined
    const { content } = step.wanted
    eachBlock(step.wanted, (idAt) => {
      if (idAt >= 0) expect(content, idAt)
    })
    return undefined
  })
  source.fetch.begin()
}

/** Of a file that may be what it was, only what turns out to differ is fetched. */
function isBuilt(step: Exclude<Step, { kind: 'remove' }>): boolean {
  if (step.wanted.kind !== 'file') return false
  if (step.kind !== 'compare') return true
  const { size, nlink } = step.live.stats
  return Number(size) !== step.wanted.sizeBytes || nlink !== 1n
}
