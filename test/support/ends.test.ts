// A test file that does not end is told of, with what keeps it, and fails the run.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

const ENDS = new URL('ends.ts', import.meta.url).href
const STUCK_FILES = new URL('../../scripts/stuck-files.ts', import.meta.url).href

interface Patience {
  /** Of the file itself. */
  ownMs?: number
  /** Of whoever runs it. */
  runnerMs?: number
}

const LONG_MS = 600_000

/** Runs a file of these lines as `npm test` does, with other patience. */
function runFile(lines: string, patience: Patience = {}): { code: number | null; output: string } {
  const { ownMs = LONG_MS, runnerMs = LONG_MS } = patience
  using folder = mkdtempDisposableSync(join(tmpdir(), 'gamekeeper-ends-'))
  const file = join(folder.path, 'one.test.mjs')
  writeFileSync(file, `import { test } from 'node:test'\ntest('passes', () => {})\n${lines}`)
  const program = join(folder.path, 'run.mjs')
  writeFileSync(
    program,
    `
    import { run } from 'node:test'
    import { watchFiles } from '${STUCK_FILES}'
    const results = run({ files: ['${file}'], execArgv: ['--import=${ENDS}'] })
    results.on('test:fail', () => { process.exitCode = 3 })
    results.on('test:stderr', ({ message }) => console.log(message))
    watchFiles(results, { quietMs: ${LONG_MS}, endsWithinMs: ${runnerMs} }, (stuck, picture) => console.log('stuck', stuck, picture))
    results.resume()`,
  )
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const { status, stdout, stderr } = spawnSync(process.execPath, [program], {
    encoding: 'utf8',
    env: { ...env, GAMEKEEPER_TEST_ENDS_WITHIN_MS: String(ownMs) },
  })
  return { code: status, output: stdout + stderr }
}

test('one that something keeps from ending says what that is, and fails', () => {
  const { code, output } = runFile("import { createServer } from 'node:net'\ncreateServer().listen(0)", { ownMs: 100 })
  assert.match(output, /one\.test\.mjs: all tests have ended, and this keeps it from ending:.*TCPServerWrap/s)
  assert.equal(code, 3)
})

test('one that cannot say anything any more is ended, shown with all below it, and fails', () => {
  const lines =
    "import { execFileSync } from 'node:child_process'\nsetTimeout(() => execFileSync('sleep', ['3600']), 50)"
  const { code, output } = runFile(lines, { runnerMs: 3000 })
  assert.match(output, /stuck .*one\.test\.mjs.*: sleep 3600/s)
  assert.equal(code, 3)
})

test('one that ends is left alone', () => {
  assert.deepEqual(runFile(''), { code: 0, output: '' })
})
