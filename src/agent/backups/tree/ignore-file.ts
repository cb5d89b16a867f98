// Which patterns count for a backup: those of the template, then those of the request or the server's own file.
import { readFile } from 'node:fs/promises'
import type { PatternChoice } from '../../../contract/agent/agent-backups.ts'
import { IGNORED_MAX_BYTES } from '../../../contract/backups/backups.ts'
import { isFailure } from '../../../contract/errors.ts'
import type { Sandbox } from '../../files/sandbox/sandbox.ts'

const IGNORE_FILE = '/.backupignore'
const TOO_LARGE = `${IGNORE_FILE} is larger than ${IGNORED_MAX_BYTES / 1024} KiB and was not applied.`
const NOT_REGULAR = `${IGNORE_FILE} is not a regular file and was not applied.`

export interface Patterns {
  ignored: string
  /** Why the server's own file does not count although there is one: the backup holds what its owner wanted left out. */
  warning?: string
}

export async function patternsFor(files: Sandbox, { ignored, ignoredByTemplate }: PatternChoice): Promise<Patterns> {
  const own: Patterns = ignored.trim() === '' ? await ownPatterns(files) : { ignored }
  return { ...own, ignored: [ignoredByTemplate, own.ignored].filter(Boolean).join('\n') }
}

async function ownPatterns(files: Sandbox): Promise<Patterns> {
  try {
    using file = files.openFile(IGNORE_FILE)
    if (file.stats.size > IGNORED_MAX_BYTES) return { ignored: '', warning: TOO_LARGE }
    return { ignored: await readFile(`/proc/self/fd/${file.fd}`, 'utf8') }
  } catch (error) {
    if (isFailure(error, 'invalid_path')) return { ignored: '', warning: NOT_REGULAR }
    if (!isFailure(error, 'not_found')) throw error
    // A symlink to nothing is there all the same.
    return { ignored: '', ...(files.lstatIfThere(IGNORE_FILE) ? { warning: NOT_REGULAR } : {}) }
  }
}
