// Counts what a backup would hold and what its patterns leave out, without reading a file. It stops after a time, and says so.
import type { BackupTally } from '../../../contract/agent/agent-backups.ts'
import { BACKUP_PREVIEW_MS } from '../../../contract/fixed-limits.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import type { Sandbox } from '../../files/sandbox/sandbox.ts'
import { createNotes, isReadable } from '../tree/backup-entries.ts'
import { createIgnoreRules } from '../tree/ignore-rules.ts'

export async function countTree(
  sandbox: Sandbox,
  ignored: string,
  signal: AbortSignal,
  longestMs = BACKUP_PREVIEW_MS,
): Promise<BackupTally> {
  const rules = createIgnoreRules(ignored)
  const notes = createNotes()
  const kept = { fileCount: 0, sizeBytes: 0 }
  const leftOut = { fileCount: 0, sizeBytes: 0 }
  const endsAt = performance.now() + longestMs
  const turn = createTurns(sandbox.share, signal)
  // In no order: names are then read bit by bit, however many a directory has.
  using tree = sandbox.openWalk('/', { enter: (found) => isReadable(found, notes) })
  for (let found = tree.next(); found; found = tree.next()) {
    if (turn.due()) {
      if (performance.now() >= endsAt) return { ignored, kept, leftOut, isComplete: false }
      await turn.take()
    }
    const { path, stats } = found
    if (!stats.isFile()) continue
    const tally = rules.isIgnored(path, false) ? leftOut : kept
    tally.fileCount++
    tally.sizeBytes += Number(stats.size)
  }
  return { ignored, kept, leftOut, isComplete: true }
}
