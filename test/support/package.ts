// The package as an owner makes it, from a copy of the checkout, so that suites that run at the same time do not meet in `dist`.
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { ROOT } from '../architecture/sources.ts'
import { type Ran, ranOf } from './ran.ts'

const SETTINGS = ['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json', 'tsconfig.types.json']
// With the panel as `npm ci` has built it: `npm pack` builds it only where it is older than its sources.
const PACKED = ['bin', 'src', 'docs', 'panel', 'scripts/build-panel.ts', ...SETTINGS]
const TEXTS = ['README.md', 'CHANGELOG.md', 'LICENSE', '.gitignore']

/** What somebody's own shell has: nothing of the npm that runs these tests, of its Node or of what the tests load. */
export function plainEnv(): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|GAMEKEEPER_|NODE_OPTIONS$|NODE_TEST_CONTEXT$)/i.test(name),
  )
  return { ...(Object.fromEntries(kept) as Record<string, string>), PATH: plainPath().join(delimiter) }
}

const plainPath = () => (process.env.PATH ?? '').split(delimiter).filter((path) => !path.includes('node_modules'))

/** A Node on this machine that is older than the one that we need. */
export function olderNode(): string | undefined {
  return plainPath()
    .map((path) => join(path, 'node'))
    .find((path) => {
      if (!existsSync(path)) return false
      const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8', env: plainEnv() })
      return Number(/^v(\d+)/.exec(stdout)?.[1] ?? 99) < 26
    })
}

/** Makes the package with `npm pack` below `folder` and answers its path. */
export async function pack(folder: string): Promise<string> {
  const copy = join(folder, 'checkout')
  mkdirSync(copy)
  for (const name of [...PACKED, ...TEXTS]) cpSync(join(ROOT, name), join(copy, name), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  // The scripts of the package run with the Node of the checkout, as they do there.
  const { stdout } = await must('npm', ['pack', '--silent', '--pack-destination', folder], copy)
  return join(folder, stdout.trim())
}

export async function run(file: string, args: readonly string[], cwd: string, env = plainEnv()): Promise<Ran> {
  return await ranOf(spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] }))
}

/** Throws with what it said when it fails. */
export async function must(file: string, args: readonly string[], cwd: string, env = plainEnv()): Promise<Ran> {
  const ran = await run(file, args, cwd, env)
  if (ran.code !== 0)
    throw new Error(`${file} ${args.join(' ')} exited with ${ran.code}:\n${ran.stdout}\n${ran.stderr}`)
  return ran
}
