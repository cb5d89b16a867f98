// The pipes of one run, and what else a container is handed beside the server's files.
import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findProgram } from '../process/isolation.ts'
import { type OwnLimits, SCRIPT_NAME } from './container-options.ts'

const run = promisify(execFile)

/** Open to whoever the game runs as; nobody else comes through the folder above. */
export async function makePipes(folder: string, script: string | null): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  chmodSync(folder, 0o755)
  if (script !== null) writeFileSync(join(folder, SCRIPT_NAME), script, { mode: 0o644 })
  const names = ['in', 'out', 'err'].map((name) => join(folder, name))
  await run(findProgram('mkfifo') ?? 'mkfifo', ['--mode=666', ...names])
}

/** As the kernel holds the service to. */
export function readOwnLimits(): OwnLimits {
  const text = readFileSync('/proc/self/limits', 'utf8')
  const hard = (name: string) => {
    const value = new RegExp(`^${name}\\s+\\S+\\s+(\\d+)`, 'm').exec(text)?.[1]
    return value === undefined ? Number.POSITIVE_INFINITY : Number(value)
  }
  return { openFiles: hard('Max open files'), processes: hard('Max processes') }
}
