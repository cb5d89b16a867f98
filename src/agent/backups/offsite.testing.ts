// What the tests of reading from an off-site store share: a folder in the place of a bucket, which can be made to fail.
import { cpSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openLocalStore } from '../../blobs/local.ts'
import { createFaultyStore } from '../../blobs/store.testing.ts'
import type { BlobStore } from '../../blobs/store.ts'
import type { TestAgent } from './backups.testing.ts'
import { packBlob } from './format/format.ts'

export interface Bucket {
  dir: string
  /** As `AgentBackupsOptions.offsite`. */
  open(): Promise<BlobStore>
  /** Names of what was read, in order. */
  readonly requests: string[]
  readonly bytesRead: number
  /** Fails from the request on that is that many from now, until it is mended; 0: with the next one. */
  breakAfter(requests: number): void
  mend(): void
  /** Awaited before each request is answered. */
  before: (name: string) => Promise<void>
}

export function openBucket(dir: string): Bucket {
  mkdirSync(dir, { recursive: true })
  const requests: string[] = []
  let left = Number.POSITIVE_INFINITY
  let bytesRead = 0
  const faults = {
    async before(_call: string, name: string) {
      await bucket.before(name)
      if (left-- <= 0) throw Object.assign(new Error('connection refused'), { code: 'ECONNREFUSED' })
      requests.push(name)
    },
    onRead(bytes: number) {
      bytesRead += bytes
    },
  }
  const bucket = {
    dir,
    requests,
    get bytesRead() {
      return bytesRead
    },
    before: async (_name: string) => {},
    breakAfter(count: number) {
      left = count
    },
    mend() {
      left = Number.POSITIVE_INFINITY
    },
    open: async () => createFaultyStore(await openLocalStore(dir, { clear: false }), faults),
  }
  return bucket
}

/** What a run of the mirror leaves in it. */
export function mirror(agent: TestAgent, { dir }: Bucket): void {
  for (const name of ['format', 'packs', 'index', 'parts', 'manifests', 'locks'])
    if (existsSync(join(agent.storeDir, name))) cpSync(join(agent.storeDir, name), join(dir, name), { recursive: true })
}

/** As if all packs had left the disk, those that the newest backup needs too. */
export async function leaveAll(agent: TestAgent): Promise<void> {
  const { packs, blobs } = await agent.backups.repository()
  for (const [packId, sizeBytes] of packs) await blobs.leave(packBlob(packId), sizeBytes)
}
