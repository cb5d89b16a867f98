// Which patterns count for a backup: those of the template, then those of the request or the server's own file.
import { readFile } from 'node:fs/promises'
import type { PatternChoice } from '../../../contract/agent/agent-backups.ts'
import { isFailure } from '../../../contract/errors.ts'
import type { Sandbox } from '../../files/sandbox/sandbox.ts'

const IGNORE_FILE = '/.backupignore'
const IGNORE_BYTES = 32 * 1024

export async function patternsFor(files: Sandbox, { ignored, ignoredByTemplate }: PatternChoice): Promise<string> {
  const own = ignored.trim() === '' ? await ownIgnoreFile(files) : ignored
  return [ignoredByTemplate, own].filter(Boolean).join('\n')
}

async function ownIgnoreFile(files: Sandbox): Promise<string> {
  try {
    using file = files.openFile(IGNORE_FILE)
    if (file.stats.size > IGNORE_BYTES) return ''
    return await readFile(`/proc/self/fd/${file.fd}`, 'utf8')
  } catch (error) {
    if (isFailure(error, 'not_found') || isFailure(error, 'invalid_path')) return ''
    throw error
  }
}
