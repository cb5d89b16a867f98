// Ours: the whole service, a process of its own that is driven over HTTP. Warm, it has done each step a dozen times before with a
// small server, as one that runs has; cold, it was started just before each step.
import { mkdirSync, renameSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { MINECRAFT, makeTree, type TreeShape } from '../game-tree.ts'
import { peakBytes } from '../measure.ts'
import { discard, heat, record, sizeOf, type Tool, UNCHANGED_RUNS, type Warmth } from './backup-peers.ts'
import { type BackupService, startBackupService } from './backup-service.ts'
import type { BenchTree } from './backup-trees.ts'
import { changeTree } from './change-tree.ts'
import { settle } from './settling.ts'

const WARM_UPS = 12
/** Large enough that more than one thread looks at it: the code of one that never has is not compiled. */
const SMALL: TreeShape = { regionFiles: 4, regionBytes: MINECRAFT.regionBytes, smallFiles: 2000 }
/** One of its region files, as much as in each that changes of a large one. */
const SMALL_CHANGE = { files: 1, bytes: 375_000, smallFiles: 0 }
const LIMITS = { entries: 2_000_000 }

export function ours(kind: Warmth, { changeMuch, settleMs }: Pick<BenchTree, 'changeMuch' | 'settleMs'>): Tool {
  return {
    name: `gamekeeper, ${kind}`,
    async round({ base, tree, change }, times) {
      const dataDir = join(base, kind)
      mkdirSync(dataDir)
      const store = join(dataDir, 'backups')
      let running = await startBackupService(dataDir)
      let peak = 0
      const end = async () => {
        peak = Math.max(peak, peakBytes(running.service.pid))
        await running.stop()
      }
      const step = async <T>(work: (service: BackupService) => Promise<T>): Promise<T> => {
        if (kind === 'cold') {
          await end()
          running = await startBackupService(dataDir)
        }
        return work(running)
      }
      const make = async (name: string) => (await running.client.servers.create({ name, limits: LIMITS })).id
      const [serverId, emptyId] = [await make('Bench'), await make('Empty')]
      const files = running.filesOf(serverId)
      rmdirSync(files)
      renameSync(tree, files)
      try {
        if (kind === 'warm') await warmUp(running, await make('Small'), await make('Copy'), settleMs)
        const backUp = () => step((service) => service.backUp(serverId))
        const held = sizeOf(store)
        record(times, 'first', (await backUp()).seconds)
        record(times, 'firstBytes', sizeOf(store) - held)
        for (let count = 0; count < UNCHANGED_RUNS; count++) record(times, 'unchanged', (await backUp()).seconds)
        change(files)
        const before = sizeOf(store)
        record(times, 'changed', (await backUp()).seconds)
        record(times, 'changedBytes', sizeOf(store) - before)
        await settle(settleMs)
        const { backup } = await backUp()
        heat(store)
        record(times, 'restore', await step(({ restore }) => restore(serverId, backup.id, emptyId)))
        changeMuch(files)
        record(times, 'restoreOver', await step(({ restore }) => restore(serverId, backup.id)))
      } finally {
        await end()
        record(times, 'memory', peak)
        renameSync(files, tree)
        discard(dataDir)
      }
    },
  }
}

async function warmUp(
  { filesOf, backUp, restore }: BackupService,
  smallId: string,
  copyId: string,
  settleMs?: number,
): Promise<void> {
  for (let count = 0; count < WARM_UPS; count++) {
    makeTree(filesOf(smallId), SMALL, 2 + count)
    const { backup } = await backUp(smallId)
    await restore(smallId, backup.id, copyId)
  }
  for (let count = 0; count < WARM_UPS; count++) {
    changeTree({ root: filesOf(smallId), seed: 2 + count, ...SMALL_CHANGE })
    await backUp(smallId)
  }
  await settle(settleMs)
  for (let count = 0; count < WARM_UPS; count++) await backUp(smallId)
}
