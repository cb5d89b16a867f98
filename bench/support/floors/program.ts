// The least programs, written in C: whatever an interpreter adds would be no floor.
import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fastestBlockHash } from '../../../src/agent/backups/blocks/block-speed.ts'
import type { BlockHash } from '../../../src/agent/backups/format/format.ts'

const SOURCES = fileURLToPath(new URL('./program', import.meta.url))

/** How blocks are named: by OpenSSL, which Node has too, or with SHA-256 of two blocks at a time, by instructions that Node does not reach. */
export type Hash = BlockHash | 'pairs'

/** What a step prints; times are in seconds. */
export interface Measured {
  seconds: number
  processor: number
}

export interface FloorProgram {
  /** Those that are fastest here, which our store uses too: on a processor without SHA instructions, BLAKE2b. */
  hashes: Hash[]
  run<T extends object>(hash: Hash, step: string, ...args: (string | number | bigint)[]): Measured & T
  /** Names of the blocks of a file. */
  namesOf(hash: Hash, path: string): string[]
}

/** Undefined where there is no C compiler. */
export function buildProgram(folder: string): FloorProgram | undefined {
  if (spawnSync('cc', ['--version']).status !== 0) return undefined
  const program = join(folder, 'floor')
  const sources = readdirSync(SOURCES).filter((name) => name.endsWith('.c'))
  const warnings = ['-Wall', '-Wextra', '-Werror']
  const flags = ['-O3', '-std=gnu11', ...warnings, '-pthread', '-o', program]
  execFileSync('cc', [...flags, ...sources.map((name) => join(SOURCES, name)), '-ldl'])
  const text = (...args: string[]) => execFileSync(program, args, { encoding: 'utf8', maxBuffer: 2 ** 28 })
  const namesOf = (hash: Hash, path: string) => text(hash, 'hash', path).split('\n').slice(0, -1)
  const canPair = spawnSync(program, ['pairs', 'hash', '/dev/null']).status === 0
  return {
    hashes: [fastestBlockHash(), ...(canPair ? ['pairs' as const] : [])],
    run: (hash, step, ...args) => JSON.parse(text(hash, step, ...args.map(String))),
    namesOf,
  }
}
