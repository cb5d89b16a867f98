// Finishes restores that have stopped in the middle, and kills that before each of its changes in turn.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { killFinishing } from '../../src/agent/backups/restore/finish.testing.ts'

/** `step` 1: before every change. */
export async function killRestores(step: number, say: (line: string) => void): Promise<void> {
  for (const direction of ['forward', 'back'] as const) {
    const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-faults-'))
    try {
      say(`${direction}: the next start went on ${await killFinishing(folder, direction, step)} times`)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
}
