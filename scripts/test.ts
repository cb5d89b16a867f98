// `npm test [-- files… flags of node…]`: installs the tools that tests use, starts one PostgreSQL for the run, and runs node:test.
import { chmodSync, globSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'
import { spreadWithin } from '../src/agent/backups/restore/spread.ts'
import { openRoot } from '../src/agent/files/sandbox/directory.ts'
import { startPostgres } from './postgres.ts'
import { watchFiles } from './stuck-files.ts'
import { installTools, missingTools } from './tools.ts'

/** Those that take longest begin first: one that began last would keep a processor waiting for it. */
const LONGEST = [
  'src/control/subdomains/reconcile',
  'test/panel/',
  'test/package/',
  'test/docs/',
  'test/faults/',
  'src/agent/files/attacker',
  'src/control/subdomains/faults',
]
/** More than there are processors, as some of them wait for a timer or for a disk. */
const FILES_AT_ONCE = 4
const TIMEOUT_MS = 600_000
/** What a file closes after its last test takes its time on a busy machine; `test/support/ends.ts` speaks before this. */
const PATIENCE = { quietMs: TIMEOUT_MS + 60_000, endsWithinMs: 300_000 }

const say = (line: string) => console.log(line)
for (const { name, reason } of installTools(say)) {
  say(`test tools: ${name} ${reason}; its suites are ${process.env.CI ? 'failed' : 'skipped'}`)
  if (process.env.CI) process.exitCode = 1
}

if (process.exitCode !== 1) {
  const postgres = missingTools().includes('postgresql') ? undefined : await startPostgres()
  // For the tests, their threads and the services that they start.
  const support = (name: string) => new URL(`../test/support/${name}.ts`, import.meta.url)
  const temporary = await makeTemporary()
  const shared = join(temporary, 'shared')
  mkdirSync(shared)
  const env = {
    ...process.env,
    // What one test finds out for all of them.
    GAMEKEEPER_TEST_RUN: shared,
    TMPDIR: temporary,
    NODE_OPTIONS: [process.env.NODE_OPTIONS, `--import=${support('descriptors/poison')}`].filter(Boolean).join(' '),
    // Hundreds of processes load the same modules: each module is stripped of its types and compiled once.
    NODE_COMPILE_CACHE: fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url)),
    ...(postgres ? { GAMEKEEPER_TEST_POSTGRES: postgres.url } : {}),
  }
  const given = process.argv.slice(2)
  const patterns = given.filter((word) => !word.startsWith('--'))
  const files = globSync(patterns.length > 0 ? patterns : ['{src,panel/src,test}/**/*.test.ts'])
  const fail = (why?: string) => {
    process.exitCode = 1
    if (why) say(why)
  }
  if (files.length === 0) fail(`no test file is ${patterns.join(' or ')}`)
  const stopping = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())
  const results = run({
    files: ordered(files),
    execArgv: [`--import=${support('ends')}`, ...given.filter((word) => word.startsWith('--'))],
    concurrency: FILES_AT_ONCE,
    timeout: TIMEOUT_MS,
    signal: stopping.signal,
    env,
  })
  results.on('test:fail', () => fail())
  watchFiles(results, PATIENCE, (file, picture) => {
    fail(`${file} neither says anything nor ends:\n${picture || '  only its output is still held'}`)
    if (!picture) stopping.abort()
  })
  // Nothing may be left out unnoticed.
  if (process.env.CI)
    results.on('test:pass', ({ name, skip }) => {
      if (skip !== undefined) fail(`skipped, which fails the run: ${name} (${skip})`)
    })
  await pipeline(results, new spec(), process.stdout, { end: false })
  await postgres?.stop()
  // A process that a test has left behind may still write there.
  rmSync(temporary, { recursive: true, maxRetries: 5 })
}

/**
 * Where the tests make their folders, each in another part of the disk: what one deletes would slow the next down on some disks. Its
 * name is short, as those of sockets below it may have no more than 107 bytes, and any user may write to it.
 */
async function makeTemporary(): Promise<string> {
  const path = mkdtempSync(join(tmpdir(), 'gk-'))
  chmodSync(path, 0o1777)
  using root = openRoot(path)
  await spreadWithin(root)
  return path
}

/** The others are mixed, always in the same way: those of one folder are often heavy together. */
function ordered(files: string[]): string[] {
  const rank = (file: string) => {
    const place = LONGEST.findIndex((start) => file.startsWith(start))
    return place === -1 ? LONGEST.length : place
  }
  return files.sort((one, other) => rank(one) - rank(other) || crc32(one) - crc32(other))
}
