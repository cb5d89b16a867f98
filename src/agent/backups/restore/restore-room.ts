// Whether a restore fits its server's quota. The tree it leaves must fit; what it displaces is in the trash, which is
// freed afterwards (restore-freeing.ts) as far as the safety backup holds the same content. A full restore of the
// server's own backup is never refused: it cannot be used to grow.
import { fail } from '../../../contract/errors.ts'
import { type Amount, diskBytes, NOTHING, sum } from '../../files/space/amounts.ts'
import { segmentsOf } from '../format/entries.ts'
import type { Checked } from './restore-checks.ts'
import type { RestoreTarget } from './restore-target.ts'

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
  /** All is staged, and this is what it adds; nothing is changed yet. Fails with `quota_exceeded`. */
  require(made: Amount): Promise<void>
}

export function createRoom(
  { usage, sandbox }: Pick<RestoreTarget, 'usage' | 'sandbox'>,
  { isRewind, hasSafety }: RoomRequest,
): Room {
  const quota = usage.quota()
  const isFree = isRewind && hasSafety
  const directories: string[] = []
  const gone = createSum()
  let limit: number | undefined

  async function readLive(): Promise<Amount> {
    const { usedBytes, trashBytes, usedEntries, trashEntries, reservedEntries } = await usage.read()
    // Entries of transfers under way were promised to them.
    return { bytes: usedBytes - trashBytes, entries: usedEntries - trashEntries + reservedEntries }
  }

  async function displacedAmount(): Promise<Amount> {
    for (const path of directories) {
      for await (const { stats } of sandbox.walk(segmentsOf(path), { anyDepth: true })) gone.add(stats)
    }
    return gone.amount()
  }

  /** Told without a look at the disk: most servers are far from their limits. */
  const fitsEasily = (made: Amount) =>
    (quota.bytes === null || made.bytes === 0) && (made.entries === 0 || usage.fitsEntries(made.entries))

  return {
    displaced({ path, stats }) {
      if (isFree) return
      gone.add(stats)
      if (stats.isDirectory()) directories.push(path)
    },
    async requirePossible(stagedBytes) {
      if (isFree || quota.bytes === null || stagedBytes <= quota.bytes) return
      limit ??= Math.max(quota.bytes, (await readLive()).bytes)
      if (stagedBytes > limit) throw tooLarge('bytes')
    },
    async require(made) {
      if (isFree || fitsEasily(made)) return
      const live = await readLive()
      const displaced = await displacedAmount()
      for (const what of ['bytes', 'entries'] as const) {
        const most = quota[what]
        if (most === null || made[what] === 0) continue
        const after = live[what] + made[what] - displaced[what]
        if (!isRewind && after > most && after > live[what]) throw tooLarge(what)
        if (!hasSafety && live[what] + made[what] > most) throw nothingToFree(what)
      }
    },
  }
}

/** Of what leaves the tree. A file with several names leaves it with the last of them. */
function createSum() {
  const left = new Map<bigint, bigint>()
  let amount = NOTHING
  return {
    add(stats: Checked['stats']): void {
      const isLinked = !stats.isDirectory() && stats.nlink > 1n
      const names = isLinked ? (left.get(stats.ino) ?? stats.nlink) - 1n : 0n
      if (isLinked) left.set(stats.ino, names)
      amount = sum(amount, { bytes: names === 0n ? diskBytes(stats) : 0, entries: 1 })
    },
    amount: () => amount,
  }
}

const LIMITS = {
  bytes: 'the disk quota of this server',
  entries: 'how many files and directories this server may have',
}

const tooLarge = (what: keyof Amount) =>
  fail('quota_exceeded', `The files would exceed ${LIMITS[what]} after it; nothing was restored.`)

const nothingToFree = (what: keyof Amount) =>
  fail(
    'quota_exceeded',
    `The files and what the restore displaces exceed ${LIMITS[what]} together; nothing was restored. ` +
      'Make room, or let the restore take a safety backup.',
  )
