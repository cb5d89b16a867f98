// Locks, in the store itself: a manifest says whether the backup was made locked and never changes, so what was locked or
// unlocked since is marked beside it. A store without its database still knows what must not be deleted.
import { BlobMissing, type BlobStore } from '../../../blobs/store.ts'
import { forEachAtOnce } from '../../../kit/waiting/work-group.ts'
import { lastSegment, manifestBlob } from '../format/format.ts'

interface Name {
  serverId: string
  backupId: string
}

/** In a store over a network each is a request. */
const READ_AT_ONCE = 8
const FOLDER = 'locks/'
const markBlob = ({ serverId, backupId }: Name) => `${FOLDER}${serverId}/${backupId}`

/** Durable once it returns. A backup that is not there gets no mark. */
export async function markLock(blobs: BlobStore, name: Name, isLocked: boolean): Promise<void> {
  try {
    await blobs.stat(manifestBlob(name.serverId, name.backupId))
  } catch (error) {
    if (error instanceof BlobMissing) return
    throw error
  }
  await blobs.put(markBlob(name), Buffer.from(`${JSON.stringify({ isLocked })}\n`))
}

export function removeMark(blobs: BlobStore, name: Name): Promise<void> {
  return blobs.delete(markBlob(name))
}

/** By backup id: whether it is locked, of those whose lock was changed after they were made. */
export async function readMarks(blobs: BlobStore, serverId?: string): Promise<Map<string, boolean>> {
  const marks = new Map<string, boolean>()
  const names: string[] = []
  for await (const { name } of blobs.list(serverId === undefined ? FOLDER : `${FOLDER}${serverId}/`)) names.push(name)
  await forEachAtOnce(names, READ_AT_ONCE, async (name) => {
    const bytes = await blobs.get(name).catch((error: unknown) => {
      if (error instanceof BlobMissing) return undefined
      throw error
    })
    if (bytes) marks.set(lastSegment(name), isLockedBy(bytes))
  })
  return marks
}

/** A mark that cannot be read locks: what is kept in error can still be deleted, not the other way round. */
function isLockedBy(bytes: Uint8Array): boolean {
  try {
    return (JSON.parse(Buffer.from(bytes).toString()) as { isLocked?: unknown } | null)?.isLocked !== false
  } catch {
    return true
  }
}
