// Whether a restore fits the quota of its server. What must fit is the tree that it leaves; what it displaces is in the
// trash, which is freed afterwards (restore-freeing.ts) as far as the safety backup holds the same. To go back to a backup
// of one's own, all of it, is never refused: it cannot be used to grow.
import { fail } from '../../contract/errors.ts'
import { diskBytes } from '../files/usage.ts'
import { segmentsOf } from './entries.ts'
import type { RestoreTarget } from './restore.ts'
import type { Checked } from './restore-checks.ts'

export interface RoomRequest {
  /** Everything, from a backup of the same server. */
  isRewind: boolean
  /** What is displaced is in a backup too. */
  hasSafety: boolean
}

export interface Room {
  /** Something that leaves the tree, with all it holds. */
  displaced(live: Checked): void
  /** `stagedBytes` can only grow: there is no need to fill the disk first. */
  requirePossible(stagedBytes: number): Promise<void>
  /** All is staged and nothing is changed yet. Fails with `quota_exceeded`. */
  require(stagedBytes: number): Promise<void>
}

export function createRoom(
  { usage, sandbox }: Pick<RestoreTarget, 'usage' | 'sandbox'>,
  { isRewind, hasSafety }: RoomRequest,
): Room {
  const quota = usage.quotaBytes()
  const isFree = quota === null || (isRewind && hasSafety)
  const directories: string[] = []
  const sum = createSum()
  let limit: number | undefined

  const liveBytes = async () => {
    const { usedBytes, trashBytes } = await usage.read()
    return usedBytes - trashBytes
  }

  async function displacedBytes(): Promise<number> {
    for (const path of directories) {
      for await (const { stats } of sandbox.walk(segmentsOf(path), { anyDepth: true }))
        if (!stats.isDirectory()) sum.add(stats)
    }
    return sum.bytes()
  }

  return {
    displaced({ path, stats }) {
      if (isFree) return
      if (stats.isDirectory()) directories.push(path)
      else sum.add(stats)
    },
    async requirePossible(stagedBytes) {
      if (isFree || stagedBytes <= quota) return
      limit ??= Math.max(quota, await liveBytes())
      if (stagedBytes > limit) throw tooLarge()
    },
    async require(stagedBytes) {
      if (isFree || stagedBytes === 0) return
      const live = await liveBytes()
      const after = live + stagedBytes - (await displacedBytes())
      if (!isRewind && after > quota && after > live) throw tooLarge()
      if (!hasSafety && live + stagedBytes > quota) throw nothingToFree()
    },
  }
}

/** Of files that leave the tree. One with several names leaves it with the last of them. */
function createSum() {
  const left = new Map<bigint, bigint>()
  let bytes = 0
  return {
    add(stats: Checked['stats']): void {
      const names = (left.get(stats.ino) ?? stats.nlink) - 1n
      if (stats.nlink > 1n) left.set(stats.ino, names)
      if (names === 0n) bytes += diskBytes(stats)
    },
    bytes: () => bytes,
  }
}

const tooLarge = () =>
  fail('quota_exceeded', 'The files would exceed the disk quota of this server after it; nothing was restored.')

const nothingToFree = () =>
  fail(
    'quota_exceeded',
    'The files and what the restore displaces exceed the disk quota of this server together; nothing was restored. ' +
      'Make room, or let the restore take a safety backup.',
  )
