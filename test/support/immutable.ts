// Files that nobody can change, so that a step fails that would otherwise always succeed.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Nobody can change, replace or remove it, be they root. */
export function withImmutable<T>(file: string, work: () => Promise<T>): Promise<T> {
  execFileSync('chattr', ['+i', file])
  return work().finally(() => execFileSync('chattr', ['-i', file]))
}

export function withoutImmutable(): string | false {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-chattr-'))
  try {
    writeFileSync(join(folder, 'file'), '')
    execFileSync('chattr', ['+i', join(folder, 'file')], { stdio: 'ignore' })
    execFileSync('chattr', ['-i', join(folder, 'file')], { stdio: 'ignore' })
    return false
  } catch {
    return !process.env.CI && 'chattr +i needs root and a file system that has it'
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
