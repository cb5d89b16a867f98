// What the documentation shows is what works: its examples are run against the service.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { needs } from '../../test/support/needs.ts'
import type { Ran } from '../../test/support/ran.ts'
import { startTestService, type TestService } from '../../test/support/service.ts'
import { LOCAL_DNS } from '../../test/support/subdomains.ts'
import { BINARY } from '../../test/support/terminal.ts'
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

/** A shell in an empty folder, with somebody's token, in which `npx` finds our command. */
async function paste(service: TestService, examples: readonly string[], folder: string): Promise<Ran> {
  // In place of npx, which looks for the package where it is called: after `--no -- gamekeeper`.
  const launcher = join(folder, 'npx')
  writeFileSync(launcher, `#!/bin/sh\nshift 3\nexec "${process.execPath}" "${BINARY}" "$@"\n`, { mode: 0o755 })
  return run('bash', ['-euo', 'pipefail', '-xc', examples.join('\n')], folder, {
    PATH: `${folder}:${process.env.PATH}`,
    GAMEKEEPER_URL: service.url,
    GAMEKEEPER_TOKEN: service.adminToken,
  })
}

test('docs/cli.md: every example runs, in order, in a shell', async () => {
  const zones = JSON.stringify([{ zone: 'play.test', provider: 'embedded', target: '203.0.113.7' }])
  await using service = await startTestService({ env: { GAMEKEEPER_ZONES: zones, ...LOCAL_DNS } })
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-docs-'))
  const examples = blocks('cli.md', 'sh')
  const { code, stdout, stderr } = await paste(service, examples, folder)
  assert.equal(code, 0, stderr)
  assert.match(stdout, /Deleted Castle\.\n$/)
  assert.match(readFileSync(join(folder, 'castle.csv'), 'utf8'), /server\.changed/)
  assert.ok(examples.length >= 6)
  rmSync(folder, { recursive: true })
})

test('docs/games.md: every example runs, in order, in a shell', needs('bubblewrap'), async () => {
  await using service = await startTestService()
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-docs-'))
  const { code, stdout, stderr } = await paste(service, blocks('games.md', 'sh'), folder)
  assert.equal(code, 0, stderr)
  assert.match(stdout, /> say hello\nYou said: say hello\n(?:.*\n)*Arena is stopped: requested \(exit code 0\)\.\n$/)
  rmSync(folder, { recursive: true })
})

/** What a test cannot do here: start the service, type a token, or end a restore that has stopped. */
const NOT_PASTED = /^npm ci|gk_…|finish-restore|backup recover/

test('README.md, docs/api.md, docs/uploads.md and docs/backups.md: pasted one after the other, every block runs', async () => {
  await using service = await startTestService()
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-docs-'))
  for (const name of ['docs', 'package.json']) cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  const examples = ['../README.md', 'api.md', 'uploads.md', 'backups.md']
    .flatMap((page) => blocks(page, 'sh'))
    .filter((block) => !NOT_PASTED.test(block))
  const { code, stdout, stderr } = await paste(service, examples, folder)
  assert.equal(code, 0, stderr)
  assert.match(stdout, /^world\/api\.md$/m, 'a backup was taken away as an archive')
  assert.equal(stdout.match(/^event: end$|"status":"completed"/gm)?.length, 2, 'two backups were followed to their end')
  assert.equal(readFileSync(join(folder, 'fetched.properties'), 'utf8'), 'motd=Hello\n')
  assert.ok(examples.length >= 9)
  rmSync(folder, { recursive: true })
})

test('docs/operating.md: with the certificate of the example, curl and the command line reach the service', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-docs-'))
  const [make = '', use = ''] = blocks('operating.md', 'sh').filter((block) => block.includes('cert.pem'))
  const made = await run('bash', ['-euc', make.replace(/^GAMEKEEPER_TLS_CERT=.* npm start$/m, '')], folder, {})
  assert.equal(made.code, 0, made.stderr)
  const files = { GAMEKEEPER_TLS_CERT: join(folder, 'cert.pem'), GAMEKEEPER_TLS_KEY: join(folder, 'key.pem') }
  await using service = await startTestService({ env: files })
  const used = use.replaceAll('8080', new URL(service.url).port)
  const trusted = await paste(service, [used, 'cd /', 'npx --no -- gamekeeper doctor'], folder)
  assert.equal(trusted.code, 0, trusted.stderr)
  assert.match(trusted.stdout, /^\{"status":"ok"\}/)
  const untrusted = await paste(service, ['npx --no -- gamekeeper server ls'], folder)
  assert.equal(untrusted.code, EXIT.unreachable)
  assert.match(untrusted.stderr, /Its certificate is not trusted here\. Set NODE_EXTRA_CA_CERTS/)
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
