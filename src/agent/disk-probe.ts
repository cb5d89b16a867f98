// Whether this machine's disks accept writes, found out by writing: a full or read-only disk still answers everything
// else. And how much room they have.
import { randomBytes } from 'node:crypto'
import { mkdir, open, stat, statfs, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { DISK_FOLDERS, type Disk } from '../contract/disks.ts'
import { fail } from '../contract/errors.ts'
import { ignoreAbsent } from '../kit/files/errno.ts'
import { DISK_MARGIN_BYTES } from './files/space/disk.ts'
import type { Layout } from './layout.ts'

const PROBE_BYTES = 4096

/** Writes and syncs a small file on each disk that the folders lie on; fails as a write there would. */
export async function probeDisks(dataDir: string, layout: Layout): Promise<void> {
  const probed = new Set<number>()
  // The data directory itself is never made anew here: one that is gone is a fault.
  await probeFolder(dataDir, probed)
  for (const folder of [layout.servers, layout.backups, layout.journal]) {
    await mkdir(folder, { recursive: true })
    await probeFolder(folder, probed)
  }
}

/** Each disk once, with what lies on it. */
export async function measureDisks(dataDir: string, { servers, backups }: Layout): Promise<Disk[]> {
  const disks = new Map<number, Disk>()
  const folders = { data: dataDir, servers, backups } as const
  for (const name of DISK_FOLDERS) {
    const path = folders[name]
    const found = await stat(path).catch(ignoreAbsent)
    if (!found) continue
    const known = disks.get(found.dev)
    if (known) {
      known.folders.push(name)
      continue
    }
    const { blocks, bavail, bsize } = await statfs(path)
    disks.set(found.dev, { folders: [name], totalBytes: blocks * bsize, freeBytes: bavail * bsize })
  }
  return [...disks.values()]
}

async function probeFolder(folder: string, probed: Set<number>): Promise<void> {
  const { dev } = await stat(folder)
  if (probed.has(dev)) return
  probed.add(dev)
  const probe = join(folder, `.probe-${randomBytes(8).toString('hex')}`)
  const file = await open(probe, 'wx', 0o600)
  try {
    await file.writeFile(Buffer.alloc(PROBE_BYTES))
    await file.sync()
  } finally {
    await file.close()
    await unlink(probe).catch(ignoreAbsent)
  }
  const { bavail, bsize } = await statfs(folder)
  if (bavail * bsize < DISK_MARGIN_BYTES) throw fail('disk_full', 'The disk is full.')
}
