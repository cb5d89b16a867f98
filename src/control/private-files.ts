// Keeps the data directory private: it holds every token's hash, the secret, and all tenants' files. A copy, a machine
// restore or an older version may have left it open.
import { chmodSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { openDescriptor } from '../kit/files/descriptor.ts'
import { hasCode } from '../kit/files/errno.ts'

const FOR_OTHERS = 0o077
/** Users of games may have to pass it on the way to their files. */
const FOR_LISTING = 0o066

/** Keeps others from listing the directory, and makes the files in it 0600, also those that are there. `databaseFile`: made so if it is not there yet. */
export function makePrivate(dataDir: string, databaseFile: string | null, log: Logger): void {
  if ((lstatSync(dataDir).mode & FOR_LISTING) !== 0) restrict(dataDir, 0o700, log)
  // What SQLite keeps beside it gets the same mode.
  if (databaseFile !== null) openDescriptor(databaseFile, 'a', 0o600)[Symbol.dispose]()
  for (const name of readdirSync(dataDir)) {
    const path = join(dataDir, name)
    if (lstatSync(path).isFile()) restrict(path, 0o600, log)
  }
}

function restrict(path: string, mode: number, log: Logger): void {
  if ((lstatSync(path).mode & FOR_OTHERS) === 0) return
  try {
    chmodSync(path, mode)
  } catch (error) {
    // Somebody else's, as on some mounted volumes: whoever mounts it decides.
    if (!hasCode(error, 'EPERM', 'EROFS')) throw error
    log.warn({ path }, 'other users of this machine may read this, and its mode cannot be changed')
  }
}
