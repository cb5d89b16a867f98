// A directory in the place of a bucket, for a whole service, with what can go wrong there.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { MirrorTarget } from '../../src/agent/offsite/index.ts'
import { openLocalStore } from '../../src/blobs/local.ts'
import { createFaultyStore, type Faults } from '../../src/blobs/store.testing.ts'

export { blobsIn, flip, namesIn } from '../../src/blobs/store.testing.ts'

export interface MirrorPlace {
  dir: string
  faults: Faults
  target: MirrorTarget
  remove(): void
}

export function createMirrorPlace(more: Partial<MirrorTarget> = {}): MirrorPlace {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-mirror-'))
  const dir = join(folder, 'bucket')
  const faults: Faults = {}
  const target: MirrorTarget = {
    place: `s3://test/${folder.slice(-6)}`,
    open: async (options) => createFaultyStore(await openLocalStore(dir, options), faults),
    describe: (error) => (error instanceof Error ? error.message : String(error)),
    bytesPerSecond: null,
    isAppendOnly: false,
    ...more,
  }
  return { dir, faults, target, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
