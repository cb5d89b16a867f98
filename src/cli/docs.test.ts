// What the documentation shows is what works: its examples are run against the service.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { startTestService } from '../../test/support/service.ts'
import { LOCAL_DNS } from '../../test/support/subdomains.ts'
import { BINARY, type Ran } from '../../test/support/terminal.ts'
import { EXIT } from './exit-codes.ts'

const ROOT = join(import.meta.dirname, '../..')
const read = (page: string) => readFileSync(join(ROOT, 'docs', page), 'utf8')
const blocks = (page: string, language: string) =>
  [...read(page).matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms'))].map(([, text]) => text ?? '')

async function run(command: string, args: string[], cwd: string, env: Record<string, string>): Promise<Ran> {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr] = [child.stdout, child.stderr].map((stream) => stream.setEncoding('utf8').toArray())
  const [code] = await once(child, 'close')
  return { code, stdout: (await stdout)?.join('') ?? '', stderr: (await stderr)?.join('') ?? '' }
}

test('docs/cli.md: every example runs, in order, in a shell', async () => {
  const zones = JSON.stringify([{ zone: 'play.test', provider: 'embedded', target: '203.0.113.7' }])
  await using service = await startTestService({ env: { GAMEKEEPER_ZONES: zones, ...LOCAL_DNS } })
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-docs-'))
  // In place of npx, which looks for the package where it is called: after `--no -- gamekeeper`.
  const launcher = join(folder, 'npx')
  writeFileSync(launcher, `#!/bin/sh\nshift 3\nexec "${process.execPath}" "${BINARY}" "$@"\n`, { mode: 0o755 })
  const env = {
    PATH: `${folder}:${process.env.PATH}`,
    // Each command is a process of its own.
    NODE_COMPILE_CACHE: join(folder, 'compiled'),
    GAMEKEEPER_URL: service.url,
    GAMEKEEPER_TOKEN: service.adminToken,
  }
  const examples = blocks('cli.md', 'sh')
  const { code, stdout, stderr } = await run('bash', ['-euxc', examples.join('\n')], folder, env)
  assert.equal(code, 0, stderr)
  assert.match(stdout, /Deleted Castle\.\n$/)
  assert.match(readFileSync(join(folder, 'castle.csv'), 'utf8'), /server\.changed/)
  assert.ok(examples.length >= 6)
  rmSync(folder, { recursive: true })
})

test('docs/cli.md has every exit code', () => {
  const documented = [...read('cli.md').matchAll(/^\| (\d+) +\|/gm)].map(([, code]) => Number(code))
  assert.deepEqual(documented, Object.values(EXIT))
})

test('docs/sdk.md: the example runs and prints what it says', async () => {
  await using service = await startTestService()
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-docs-'))
  const [example = ''] = blocks('sdk.md', 'ts')
  const sdk = pathToFileURL(join(ROOT, 'src/sdk/index.ts')).href
  writeFileSync(join(folder, 'example.ts'), example.replace('../src/sdk/index.ts', sdk))
  const env = { GAMEKEEPER_URL: service.url, GAMEKEEPER_TOKEN: service.adminToken }
  const { code, stdout, stderr } = await run(process.execPath, ['example.ts'], folder, env)
  assert.equal(code, 0, stderr)
  const expected = /^30\nCastle srv_\w+\nserver\.created\nserver\.changed\ninvalid_request \[ \{ path: '\/name'/
  assert.match(stdout, expected)
  rmSync(folder, { recursive: true })
})

test('npx finds the command in the checkout', async () => {
  for (const before of [[], ['--no', '--']]) {
    const { code, stdout } = await run('npx', [...before, 'gamekeeper', '--version'], ROOT, {})
    assert.equal(code, 0)
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/)
  }
})

test('outside of the checkout nothing is fetched and run in its place', async () => {
  const pasted = ['README.md', 'docs/cli.md', 'docs/operating.md'].flatMap((path) =>
    [...readFileSync(join(ROOT, path), 'utf8').matchAll(/```sh\n(.*?)```/gs)].map(([, block]) => block ?? ''),
  )
  const calls = pasted.join('\n').match(/\bnpx\b.*\bgamekeeper\b/g) ?? []
  assert.ok(calls.length >= 3)
  for (const call of calls) assert.match(call, /^npx --no -- gamekeeper$/)
})
