// Every theme by its name, in the order in which rounds take their turns.
import {
  abortedRanges,
  brokenRestores,
  deletedUnderNext,
  longQueue,
  refusedRestoreEnd,
  restoreTypos,
} from './backups.ts'
import { someCalls } from './every-call.ts'
import { everything, everythingKilled, injectedErrors, refusedStatements } from './everything.ts'
import {
  deletedTwice,
  deletedWhilePacking,
  failedChange,
  heldServer,
  lockAgainstDelete,
  quotaRace,
  twoProcesses,
} from './servers.ts'
import { fullDisk, lyingSizes, mergeQuota, readOnlyDisk } from './space.ts'
import type { Theme } from './theme.ts'
import { clockSteps, frozen, killedFolders, killedUploads, killedWriters, tightQuota, tinyWrites } from './writers.ts'

export const THEMES: Record<string, Theme> = {
  everything,
  'everything-killed': everythingKilled,
  'injected-errors': injectedErrors,
  'refused-statements': refusedStatements,
  'some-calls': someCalls,
  'tiny-writes': tinyWrites,
  'killed-writers': killedWriters,
  'killed-folders': killedFolders,
  'killed-uploads': killedUploads,
  'clock-steps': clockSteps,
  frozen,
  'tight-quota': tightQuota,
  'lying-sizes': lyingSizes,
  'merge-quota': mergeQuota,
  'full-disk': fullDisk,
  'read-only-disk': readOnlyDisk,
  'deleted-under-next': deletedUnderNext,
  'restore-typos': restoreTypos,
  'broken-restores': brokenRestores,
  'refused-restore-end': refusedRestoreEnd,
  'long-queue': longQueue,
  'aborted-ranges': abortedRanges,
  'lock-against-delete': lockAgainstDelete,
  'deleted-twice': deletedTwice,
  'quota-race': quotaRace,
  'failed-change': failedChange,
  'deleted-while-packing': deletedWhilePacking,
  'held-server': heldServer,
  'two-processes': twoProcesses,
}
