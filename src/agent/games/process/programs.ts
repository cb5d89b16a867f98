// The programs that a template asks for, on this machine.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { fail } from '../../../contract/errors.ts'
import type { LaunchRequirement } from '../../../contract/games/launch.ts'
import { findProgram, PATH } from './isolation.ts'

const run = promisify(execFile)
const ANSWERS_WITHIN_MS = 10_000

export async function requireProgram({ kind, program, version = 0, hint }: LaunchRequirement): Promise<void> {
  // With a slash it is a file of the server, which is looked for as that.
  if (kind === 'program' && program && !program.includes('/') && !findProgram(program))
    throw fail('not_startable', `The program ${program} is not installed on this machine. ${hint}`)
  if (kind !== 'java') return
  const found = await javaVersion()
  if (found === undefined) throw fail('not_startable', `Java is not installed on this machine. ${hint}`)
  if (found < version)
    throw fail('not_startable', `Java ${version} or later is needed; this machine has ${found}. ${hint}`)
}

/** Before Java 9 the number came after a `1.`. */
const VERSION = /version "(?:1\.)?(\d+)/

async function javaVersion(): Promise<number | undefined> {
  const java = findProgram('java')
  if (!java) return undefined
  try {
    const { stderr, stdout } = await run(java, ['-version'], { env: { PATH }, timeout: ANSWERS_WITHIN_MS })
    return Number(VERSION.exec(stderr + stdout)?.[1] ?? 0)
  } catch {
    return undefined
  }
}
