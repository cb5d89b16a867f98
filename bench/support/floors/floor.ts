// A floor for each step of a backup: what the least program takes that does nothing but what no backup can do without.
import { mkdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { discard, heat, type Line, record, type Times, type Tool, UNCHANGED_RUNS } from '../backup-peers.ts'
import type { FloorProgram, Hash, Measured } from './program.ts'

/** What has changed in place, and what would be stored of it if blocks had so many bytes; zeros at the ends of sectors are not. */
export interface Changed {
  files: number
  fileBytes: number
  sectors: number
  stored: number[]
}

export const BLOCK_KIB = [4, 8, 16, 32, 64]

export interface Floor extends Tool {
  /**
   * What nobody gets below, however well the work is spread: the processor time of that program over all processors, or the
   * writing alone, whichever takes longer. Where the writing was disturbed, what the program took with it is less.
   */
  bounds: Times
  changes: Changed[]
}

export const floorName = (hash: Hash) => `least program, ${hash}`

/** `storedBytes`: what the store has after a first backup. */
export function createFloor(program: FloorProgram, hash: Hash, storedBytes: () => number): Floor {
  const bounds: Times = {}
  const changes: Changed[] = []
  return {
    name: floorName(hash),
    bounds,
    changes,
    async round({ base, tree, change }, times) {
      const at = (name: string) => join(base, hash, name)
      mkdirSync(at(''))
      const folder = (name: string) => {
        mkdirSync(at(name))
        return at(name)
      }
      const run = <T extends object>(step: string, ...args: (string | number | bigint)[]) =>
        program.run<T>(hash, step, ...args)
      const note = (line: Line, { seconds, processor }: Measured, diskSeconds = 0) => {
        record(times, line, seconds)
        record(bounds, line, Math.min(seconds, Math.max(processor / availableParallelism(), diskSeconds)))
      }
      /** Alone, with nothing to do for the processors. */
      const writing = (name: string, bytes: number) => {
        const { seconds } = run('write', folder(name), bytes)
        discard(at(name))
        return seconds
      }

      const first = run<{ bytes: number }>('first', tree, folder('first'), storedBytes())
      discard(at('first'))
      note('first', first, writing('first-alone', storedBytes()))
      for (let count = 0; count < UNCHANGED_RUNS; count++) note('unchanged', run('walk', tree))

      const { newestNs } = run<{ newestNs: string }>('prints', tree, at('prints'))
      change(tree)
      const since = BigInt(newestNs) + 1n
      changes.push(run<Changed>('compare', tree, at('prints'), since))
      const changed = run<{ added: number }>('changed', tree, at('prints'), since, folder('changed'))
      note('changed', changed, writing('changed-alone', changed.added))
      record(times, 'changedBytes', changed.added)

      run('pack', tree, at('pack'), at('list'))
      heat(at(''))
      const restored = run('restore', at('pack'), at('list'), folder('restored'))
      discard(at(''))
      note('restore', restored, writing('restore-alone', first.bytes))
    },
  }
}
