// `npm run faults -- history-mutants [names…]`: takes one fix out again at a time and shows that the histories find it.
// Each patch in mutants/ is named after its fault, and says in its first lines which themes look for it.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withPostgres } from './main.ts'
import type { Result } from './run.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const PATCHES = fileURLToPath(new URL('./mutants/', import.meta.url))
const COPIED = ['src', 'test', 'scripts', 'package.json', 'tsconfig.json']

export interface Mutant {
  name: string
  fault: string
  themes: string[]
  engines: string[]
}

interface Found {
  rounds: number
  sentence: string | null
}

export async function runMutants(rounds: number, say: (line: string) => void, args: string[]): Promise<void> {
  const wanted = args.filter((arg, index) => index > 0 || !/^\d+$/.test(arg))
  const mutants = readMutants().filter(
    ({ name }) => wanted.length === 0 || wanted.some((each) => name.startsWith(each)),
  )
  const survivors: string[] = []
  await withPostgres(async (available) => {
    for (const mutant of mutants) {
      const engines = mutant.engines.filter((engine) => available.some((each) => each === engine))
      const { rounds: used, sentence } = huntDown(mutant, engines, rounds)
      if (sentence === null) survivors.push(mutant.name)
      say(
        `| ${mutant.fault} | ${mutant.name} | ${sentence === null ? 'NOT FOUND' : 'found'} after ${used} | ${sentence ?? ''} |`,
      )
    }
  })
  say(
    `${mutants.length} mutants, ${survivors.length} not found${survivors.length > 0 ? `: ${survivors.join(', ')}` : ''}`,
  )
  if (survivors.length > 0) process.exitCode = 1
}

/** `fault: 7` and `themes: killed-folders killed-writers`, and `engines: postgres` where one alone can show it. */
export function readMutants(): Mutant[] {
  return readdirSync(PATCHES)
    .filter((file) => file.endsWith('.patch'))
    .sort()
    .map((file) => {
      const text = readFileSync(join(PATCHES, file), 'utf8')
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(text)?.[1]?.trim() ?? ''
      const engines = field('engines') || 'sqlite postgres'
      return {
        name: file.replace('.patch', ''),
        fault: field('fault'),
        themes: field('themes').split(' '),
        engines: engines.split(' '),
      }
    })
}

export const patchOf = (name: string) => join(PATCHES, `${name}.patch`)

function huntDown(mutant: Mutant, engines: readonly string[], rounds: number): Found {
  const copy = mkdtempSync(join(tmpdir(), 'gamekeeper-mutant-'))
  try {
    for (const name of COPIED) cpSync(join(ROOT, name), join(copy, name), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
    execFileSync('git', ['apply', patchOf(mutant.name)], { cwd: copy, stdio: 'pipe' })
    for (let round = 1; round <= rounds; round++) {
      for (const theme of mutant.themes) {
        const engine = engines[round % engines.length] ?? 'sqlite'
        const { violations } = runIn(copy, theme, engine, round)
        if (violations[0] !== undefined) return { rounds: round, sentence: violations[0] }
      }
    }
    return { rounds, sentence: null }
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

/** The harness is the copy's own, so that it starts the service of the copy. */
function runIn(copy: string, theme: string, engine: string, seed: number): Result {
  const script = `
    const { runRound } = await import('./test/faults/history/run.ts')
    console.log(JSON.stringify(await runRound(${JSON.stringify(theme)}, ${JSON.stringify(engine)}, ${seed})))`
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], { cwd: copy, encoding: 'utf8' })
  return JSON.parse(output.trimEnd().split('\n').at(-1) ?? '') as Result
}
