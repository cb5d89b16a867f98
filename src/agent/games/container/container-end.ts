// How a container ended: what the engine knows of it, and what its supervisor has written down.
import { setTimeout as delay } from 'node:timers/promises'
import { readRecord } from '../../../kit/files/durable-record.ts'
import type { RunEnd } from '../runtime.ts'
import { endOfCode } from '../supervisor/exit-codes.ts'
import type { GameEnd } from '../supervisor/protocol.ts'
import type { ContainerState } from './engine.ts'
import { wasOutOfMemory } from './kernel-log.ts'

const ASK_EVERY_MS = 20
/** For a supervisor to write down how the run ended. */
const WRITTEN_WITHIN_MS = 10_000

export function endOf(state: ContainerState | undefined): GameEnd {
  // Somebody has removed it.
  if (!state) return { code: null, signal: 'SIGKILL', isOutOfMemory: false }
  const end = endOfCode(state.exitCode)
  const isOutOfMemory = end.signal === 'SIGKILL' && (state.isOutOfMemory || wasOutOfMemory(state.id))
  return { ...end, isOutOfMemory }
}

/** The supervisor writes it when it has written the last line. */
export async function writtenEnd(file: string): Promise<RunEnd | undefined> {
  const deadline = performance.now() + WRITTEN_WITHIN_MS
  while (performance.now() < deadline) {
    const end = readRecord<RunEnd>(file)
    if (end) return end
    await delay(ASK_EVERY_MS)
  }
  return undefined
}
