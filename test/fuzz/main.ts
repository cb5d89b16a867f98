// `npm run fuzz -- TARGET [--minutes 5] [--seed N] [--keep]`: inputs that change at random, and those that reach new blocks of
// the code are changed further. A finding is made as small as it can be and kept in the corpus, which `npm test` runs.
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { sameFault } from './protocol.ts'
import { type Finding, fuzz, minimise } from './runner.ts'
import { corpusFolder, loadTarget, readCorpus, targetNames } from './target.ts'

const MINUTE_MS = 60_000
const SAY_EVERY_MS = 30_000
const FINDINGS_MAX = 10

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % (24 * 60 * MINUTE_MS)) },
    keep: { type: 'boolean', default: false },
  },
})
const [name = ''] = positionals
const hash = (input: Buffer) => createHash('sha256').update(input).digest('hex').slice(0, 16)

function save(kind: 'finding' | 'reached', input: Buffer): string {
  const file = join(corpusFolder(name), `${kind}-${hash(input)}`)
  mkdirSync(corpusFolder(name), { recursive: true })
  writeFileSync(file, input)
  return file
}

async function run(): Promise<void> {
  const seeds = [...(await loadTarget(name)).seeds(), ...readCorpus(name).map(({ input }) => input)]
  const findings = new Map<string, Finding>()
  let total = { runs: 0, blocks: 0, kept: 0 }
  let sayAt = 0
  console.log(`${name}: ${values.minutes} minutes, --seed ${values.seed}, ${seeds.length} inputs to begin with`)
  await fuzz(name, {
    seed: Number(values.seed),
    seeds,
    untilMs: Date.now() + Number(values.minutes) * MINUTE_MS,
    onFinding(finding) {
      const kind = sameFault(finding.fault)
      if (findings.has(kind) || findings.size >= FINDINGS_MAX) return
      findings.set(kind, finding)
      console.log(`${name}: found ${finding.fault} (${finding.input.length} bytes)`)
    },
    onKept: (input) => values.keep && save('reached', input),
    onProgress(progress) {
      total = progress
      if (Date.now() < sayAt) return
      sayAt = Date.now() + SAY_EVERY_MS
      console.log(`${name}: ${progress.runs} inputs, ${progress.blocks} blocks, ${progress.kept} kept`)
    },
  })
  for (const finding of findings.values()) {
    const { input, fault } = await minimise(name, finding)
    console.log(`${save('finding', input)}: ${fault}\n  ${JSON.stringify(input.toString('latin1').slice(0, 500))}`)
  }
  console.log(`${name}: ${total.runs} inputs, ${total.blocks} blocks reached, ${findings.size} findings`)
  if (findings.size > 0) process.exitCode = 1
}

if (targetNames().includes(name)) await run()
else {
  console.log(`npm run fuzz -- ${targetNames().join('|')} [--minutes 5] [--seed N] [--keep]`)
  process.exitCode = name === '' ? 0 : 2
}
