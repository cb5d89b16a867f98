// What the tests of this folder share: throw-away trees on a real disk, and a count of open descriptors.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { until } from '../../../test/support/until.ts'

/** Keys are paths; a key that ends in a slash is an empty directory. Taken away when the test ends. */
export function makeTree(t: TestContext, files: Record<string, string | Uint8Array> = {}): string {
  const base = mkdtempSync(join(tmpdir(), 'gamekeeper-files-'))
  t.after(() => rmSync(base, { recursive: true, force: true }))
  fillTree(base, files)
  return base
}

export function fillTree(base: string, files: Record<string, string | Uint8Array>): void {
  for (const [path, content] of Object.entries(files)) {
    const full = join(base, path)
    if (path.endsWith('/')) mkdirSync(full, { recursive: true })
    else {
      mkdirSync(dirname(full), { recursive: true })
      writeFileSync(full, content)
    }
  }
}

/** Descriptors of files and directories; sockets, pipes and event descriptors come and go with the runtime. */
export function openDescriptors(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`)
      return target.startsWith('/') && !target.startsWith('/proc') && !target.startsWith('/dev') ? [target] : []
    } catch {
      return []
    }
  })
}

/** A read that was under way when its file was closed ends by itself, and the descriptor is open until then. */
export async function untilDescriptors(expected: readonly string[]): Promise<void> {
  const areThese = async () => isDeepStrictEqual(openDescriptors(), expected)
  await until(areThese).catch(() => assert.deepEqual(openDescriptors(), expected))
}

/** Mounts until the end of the block, so that nothing is mounted any more when the tree is taken away. */
export function mount(target: string, ...options: string[]): Disposable {
  execFileSync('mount', [...options, target])
  return { [Symbol.dispose]: () => execFileSync('umount', [target]) }
}

/** The reason to skip a test that mounts. Where tests must all run, none: it fails there instead. */
export function withoutRoot(): string | false {
  return process.getuid?.() !== 0 && !process.env.CI && 'mounting needs root'
}
