// A directory in the place of a bucket, for a whole service, with what can go wrong there.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { MirrorTarget } from '../../src/agent/offsite/index.ts'
import { openLocalStore } from '../../src/blobs/local.ts'
import { createFaultyStore, type Faults } from '../../src/blobs/store.testing.ts'
import type { Engine } from '../../src/control/db/database.ts'
import { createWorld, type World } from './backups.ts'
import { startTestService, type TestService } from './service.ts'

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

export interface Mirrored {
  place: MirrorPlace
  service: TestService
  world: World
  stop(): Promise<void>
}

/** A service whose backups are mirrored to a place of their own. */
export async function startMirrored(engine: Engine): Promise<Mirrored> {
  const place = createMirrorPlace()
  const service = await startTestService({ engine, mirror: place.target })
  const stop = async () => {
    await service.stop()
    place.remove()
  }
  return { place, service, world: createWorld(service), stop }
}
