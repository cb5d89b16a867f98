// What can be fuzzed: each is a module in targets/ that exports these.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Random } from '../faults/history/random.ts'

export interface FuzzTarget {
  /** Inputs to begin with: good ones, and those that come near to being refused. */
  seeds(): Uint8Array[]
  /** Throws where something is wrong. A refusal that callers expect is not. */
  run(input: Buffer): void | Promise<void>
  /** Called after the last input. */
  close?(): void | Promise<void>
  /** A change that knows the format; others know bytes only. */
  mutate?(input: Buffer, random: Random): Buffer
  /** What inputs are likely to hold. */
  dictionary?: readonly string[]
  /** Parts of the addresses of sources whose blocks count as reached; `/src/` by default. */
  covers?: readonly string[]
  /** An input that keeps the thread for longer is a finding; 500 by default. */
  maxCpuMs?: number
}

const TARGETS = new URL('./targets/', import.meta.url)
const CORPUS = new URL('./corpus/', import.meta.url)

export const targetNames = () =>
  readdirSync(TARGETS)
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.testing.ts'))
    .map((name) => name.slice(0, -'.ts'.length))
    .sort()

export const loadTarget = async (name: string): Promise<FuzzTarget> => await import(new URL(`${name}.ts`, TARGETS).href)

export const corpusFolder = (name: string) => fileURLToPath(new URL(`${name}/`, CORPUS))

/** What earlier runs have kept: every finding, and what reached something new where it was asked for. */
export function readCorpus(name: string): { file: string; input: Buffer }[] {
  const folder = corpusFolder(name)
  return listed(folder).map((file) => ({ file, input: readFileSync(join(folder, file)) }))
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch {
    // Nothing was kept yet.
    return []
  }
}
