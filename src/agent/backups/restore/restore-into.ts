// Restores all of a backup into empty files that are no server's, for a rehearsal.
import { statfs } from 'node:fs/promises'
import { fail } from '../../../contract/errors.ts'
import { REHEARSAL_FREE_BYTES } from '../../../contract/fixed-limits.ts'
import type { TaskContext } from '../../tasks.ts'
import { holdManifest } from '../format/manifest.ts'
import type { Repository } from '../store/repository.ts'
import { runRestore } from './restore.ts'
import type { RestoreTarget } from './restore-target.ts'

/** Of no job: whoever makes the files also takes them away, whatever this comes to. */
const JOB = 'scratch'

export async function restoreInto(
  repository: Repository,
  target: RestoreTarget,
  name: { serverId: string; backupId: string },
  { signal, report }: Pick<TaskContext, 'signal' | 'report'>,
): Promise<void> {
  await using manifest = await holdManifest(repository.blobs, repository.sealer, name)
  using _store = await repository.writing.share(signal)
  const { fileCount, sizeBytes } = manifest.meta
  await requireSpace(target.folders.staging, sizeBytes)
  report({ filesTotal: fileCount, bytesTotal: sizeBytes })
  const everything = { mode: 'replace', paths: null, isOrigin: false, safetyBackupId: null } as const
  await runRestore(repository, target, { jobId: JOB, manifest, ...everything }, signal, (filesDone, bytesDone) =>
    report({ filesDone, bytesDone }),
  )
}

async function requireSpace(folder: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder)
  if (bavail * bsize < bytes + REHEARSAL_FREE_BYTES)
    throw fail(
      'disk_full',
      `The disk has no room for the ${bytes} bytes of this backup beside what is there, with 1 GiB left free.`,
    )
}
