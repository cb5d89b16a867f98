// The part of the Agent port that deals with the mirror: the blobs of the store under the same names in another place.

export interface AgentOffsite {
  /**
   * Makes the place this service's own, whoever had it. Fails with `offsite_taken` where it holds a store that does not
   * fit this one. Must be idempotent.
   */
  claim(): Promise<void>
}

/** Work for `AgentTasks`; it concerns no server. */
export type OffsiteWork =
  /**
   * Sends what the mirror lacks, replaces what is known to be damaged in it, then removes from it what the store no longer has. Of two, the later waits for the
   * earlier. Its progress counts blobs as files.
   */
  {
    kind: 'backups.mirror'
    /** The mirror is listed anew, and the report tells of every backup; by default of those that were sent just now. */
    isThorough: boolean
    /** Backups that were deleted by somebody's wish: what else is gone from the store is not removed from the mirror. */
    deletedBackups: string[]
    /** Somebody has confirmed that this much may be removed, though a safeguard stands against it. */
    confirmedBytes: number | null
  }

export interface MirrorReport {
  /** Their manifests and everything that these need are in the mirror: all of them, or those that were sent just now. */
  stored: { serverId: string; backupId: string }[]
  isThorough: boolean
  /** Those that cannot be: a pack that they need is neither in the store nor in the mirror, or not as it was. */
  lacking: { serverId: string; backupId: string }[]
  sent: BlobSum
  removed: BlobSum
  /** Blobs that were known to be damaged in the mirror, and have been replaced by those of the store. */
  repaired: string[]
  /** Those that could not be replaced. */
  damaged: DamagedBlob[]
  /** What the mirror holds now. */
  mirror: BlobSum & { backups: number }
  /** What it holds and the store does not, and why that was left. */
  surplus: (BlobSum & { backups: number; reason: SurplusReason }) | null
  /** Backups of the surplus that are not among `deletedBackups`. */
  unexplained: { serverId: string; backupId: string }[]
  /** What somebody should know of the place though it works, each a sentence without secrets. */
  warnings: string[]
}

export interface DamagedBlob {
  blob: string
  /** What stands against it, in a sentence. */
  why: string
}

export interface BlobSum {
  blobs: number
  bytes: number
}

/**
 * `append_only`: nothing is ever removed, or the key may not. `shrinks`: less than half of the mirror would be left. `store_incomplete`: the
 * store lacks backups or packs that nobody has deleted. The last two give way to a confirmation.
 */
export const SURPLUS_REASONS = ['append_only', 'shrinks', 'store_incomplete'] as const
export type SurplusReason = (typeof SURPLUS_REASONS)[number]

export interface OffsiteResults {
  'backups.mirror': MirrorReport
}
