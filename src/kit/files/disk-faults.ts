// What a disk that takes no bytes says of itself, in the codes of the system calls and of both databases.

export type DiskFault = 'disk_full' | 'disk_read_only' | 'disk_failing'

const BY_ERRNO: Record<string, DiskFault> = {
  ENOSPC: 'disk_full',
  EDQUOT: 'disk_full',
  EROFS: 'disk_read_only',
  EIO: 'disk_failing',
}
/** PostgreSQL: disk_full, read_only_sql_transaction, io_error. */
const BY_SQLSTATE: Record<string, DiskFault> = { 53100: 'disk_full', 25006: 'disk_read_only', 58030: 'disk_failing' }
/** SQLite: SQLITE_FULL, SQLITE_READONLY, SQLITE_IOERR; the higher bits of a code only say where. */
const BY_SQLITE: Record<number, DiskFault> = { 13: 'disk_full', 8: 'disk_read_only', 10: 'disk_failing' }
const SQLITE_PRIMARY = 0xff

/** Looks at what the error was caused by, too. Undefined where it has nothing to do with the disk. */
export function diskFaultOf(error: unknown): DiskFault | undefined {
  if (!(error instanceof Error)) return undefined
  // A clean-up that met the same disk hides what failed first.
  if (error instanceof SuppressedError) return diskFaultOf(error.error) ?? diskFaultOf(error.suppressed)
  const { code, errcode } = error as { code?: unknown; errcode?: unknown }
  if (typeof errcode === 'number') return BY_SQLITE[errcode & SQLITE_PRIMARY]
  const own = typeof code === 'string' ? (BY_ERRNO[code] ?? BY_SQLSTATE[code]) : undefined
  return own ?? diskFaultOf(error.cause)
}
