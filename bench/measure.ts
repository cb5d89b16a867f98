// What benchmarks share: tables, medians, and load from a process of its own.
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'

export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2
}

export function table(rows: readonly (readonly (string | number)[])[]): void {
  const texts = rows.map((row) => row.map((cell) => (typeof cell === 'number' ? round(cell) : cell)))
  const widths = (texts[0] ?? []).map((_, column) => Math.max(...texts.map((row) => row[column]?.length ?? 0)))
  for (const row of texts) console.log(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
}

const round = (value: number) => (value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(2) : value.toFixed(3))

/** Says how a measured value stands to its bar, and whether it holds. */
export function holds(what: string, value: number, sign: '<=' | '>=', bar: number): boolean {
  const held = sign === '<=' ? value <= bar : value >= bar
  console.log(`${held ? 'holds' : 'FAILS'}: ${what} is ${round(value)}, must be ${sign} ${bar}`)
  return held
}

export const TICKS_PER_SECOND = 100

/** Seconds of processor time that a process has used. Unlike a rate, it does not depend on who else uses the machine. */
export const cpuSeconds = (pid: number): number => secondsIn(pid, [11, 12])

/** The same, of those that this process has started and that have ended. */
export const cpuSecondsOfEnded = (): number => secondsIn('self', [13, 14])

function secondsIn(pid: number | 'self', columns: readonly number[]): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return columns.reduce((sum, column) => sum + Number(fields[column]), 0) / TICKS_PER_SECOND
}

/** The most bytes that a process had in memory since it began, or since `restartPeak`. */
export function peakBytes(pid: number): number {
  const [, kib] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) * 1024
}

export function restartPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}

/** Requests a second at one address, by wrk (Debian's package), which is not ours and is the same for both sides. */
export async function requestsPerSecond(
  url: string,
  headers: Record<string, string>,
  seconds: number,
): Promise<number> {
  const args = [
    '-t1',
    '-c16',
    `-d${seconds}s`,
    ...Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
    url,
  ]
  const child = spawn('wrk', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const output = await text(child.stdout)
  const rate = Number(/Requests\/sec:\s+([\d.]+)/.exec(output)?.[1])
  const failed = /Non-2xx or 3xx responses: (\d+)/.exec(output)?.[1]
  if (!rate || failed) throw new Error(`wrk: ${output}`)
  return rate
}
