import { type Failure, fail, isFailure } from '../../../contract/errors.ts'
import { diskFaultOf } from '../../../kit/files/disk-faults.ts'
import { hasCode } from '../../../kit/files/errno.ts'

/** What a failed system call means to the caller who named `path`. Whatever it does not explain is handed back as it is. */
export function explain(error: unknown, path: string): Failure | unknown {
  if (isFailure(error)) return error
  if (hasCode(error, 'ENOENT', 'ENOTDIR')) return fail('not_found', `There is no ${quote(path)}.`, error)
  if (hasCode(error, 'ELOOP')) return fail('invalid_path', `${quote(path)} leads through a symbolic link.`, error)
  if (hasCode(error, 'EEXIST', 'ENOTEMPTY')) return fail('already_exists', `${quote(path)} already exists.`, error)
  if (hasCode(error, 'EISDIR')) return fail('invalid_path', `${quote(path)} is a directory.`, error)
  if (hasCode(error, 'ENAMETOOLONG')) return fail('invalid_path', `${quote(path)} is too long.`, error)
  if (hasCode(error, 'EBUSY', 'EXDEV')) return fail('invalid_path', `${quote(path)} is a mount point.`, error)
  if (hasCode(error, 'ENXIO', 'ENODEV')) return fail('invalid_path', `${quote(path)} is not a regular file.`, error)
  // Only readlink(2) answers so here: what was a symlink a moment ago no longer is one.
  if (hasCode(error, 'EINVAL')) return fail('invalid_path', `${quote(path)} was changed meanwhile.`, error)
  return explainDisk(error)
}

/** The same where no path was named: only what the disk itself has to say. */
export function explainDisk(error: unknown): Failure | unknown {
  const fault = isFailure(error) ? undefined : diskFaultOf(error)
  return fault ? fail(fault, {}, error) : error
}

/** Said of a server that is put aside or taken away, or about to be: whoever looks after all of them passes it by. */
export const isLeaving = (error: unknown): boolean =>
  isFailure(error, 'not_found') || isFailure(error, 'server_deleted') || isFailure(error, 'server_busy')

export async function explainedDisk<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw explainDisk(error)
  }
}

export function explained<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw explain(error, path)
  }
}

export async function explainedAsync<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw explain(error, path)
  }
}

function quote(path: string): string {
  return JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path)
}
