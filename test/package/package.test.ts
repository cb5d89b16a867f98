// The package that `npm pack` makes, installed into an empty folder and used from there.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, test } from 'node:test'
import { ROOT } from '../architecture/sources.ts'
import { must, olderNode, pack, plainEnv, run } from '../support/package.ts'
import { describeContainer } from './container.ts'

const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-package-'))
// Where docs/installing.md puts it, beside the checkout.
const checkout = join(folder, 'gamekeeper')
const user = join(folder, 'gamekeeper-app')
const installed = join(user, 'node_modules/gamekeeper')
const binary = join(user, 'node_modules/.bin/gamekeeper')
const older = olderNode()
const NPX = ['npx', '--no', '--', 'gamekeeper']
// Each command is a process of its own.
const COMPILED = { NODE_COMPILE_CACHE: join(folder, 'compiled') }
const running = new Set<ChildProcess>()
let tarball: string

before(async () => {
  tarball = await pack(folder)
  mkdirSync(checkout)
  writeFileSync(join(checkout, 'package.json'), CHECKOUT)
  copyFileSync(tarball, join(checkout, basename(tarball)))
  const env = { ...plainEnv(), npm_config_prefer_offline: 'true', npm_config_audit: 'false', npm_config_fund: 'false' }
  await must('bash', ['-euc', installBlock()], checkout, env)
  const made = JSON.parse(readFileSync(join(user, 'package.json'), 'utf8'))
  writeFileSync(join(user, 'package.json'), JSON.stringify({ ...made, type: 'module' }))
})
after(() => {
  for (const child of running) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

/** The block of docs/installing.md, but for the service, which would not end. */
function installBlock(): string {
  const page = readFileSync(join(ROOT, 'docs/installing.md'), 'utf8')
  const block = [...page.matchAll(/```sh\n(.*?)```/gs)]
    .map(([, text = '']) => text)
    .find((text) => text.includes('serve'))
  return (block ?? '').replace('npx --no -- gamekeeper serve', 'true')
}

describe('the package', () => {
  test('docs/installing.md: the blocks install into a folder of its own, not into the checkout', () => {
    assert.equal(readFileSync(join(checkout, 'package.json'), 'utf8'), CHECKOUT)
    assert.ok(JSON.parse(readFileSync(join(user, 'package.json'), 'utf8')).dependencies.gamekeeper)
  })

  test('holds what runs, its types and its pages, and no source or test', async () => {
    const { stdout } = await must('tar', ['tzf', tarball], folder)
    const names = stdout.trim().split('\n')
    const pages = ['docs/operating.md', 'LICENSE', 'panel/dist/index.html']
    for (const name of ['dist/main.js', 'dist/sdk/index.d.ts', 'bin/gamekeeper.js', ...pages])
      assert.ok(names.includes(`package/${name}`), name)
    assert.ok(names.some((name) => /^package\/panel\/dist\/assets\/first-[^/]+\.js\.br$/.test(name)))
    const folders = /package\/(src|test|bench|scripts|node_modules|data|panel\/(?!dist\/))/
    const surplus = new RegExp(`\\.(test|testing|contract)\\.|(?<!\\.d)\\.ts$|${folders.source}`)
    assert.deepEqual(
      names.filter((name) => surplus.test(name)),
      [],
    )
  })

  test('cannot be published by accident', () => {
    assert.equal(JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')).private, true)
  })

  useFrom('the Node that runs these tests', process.execPath, [process.execPath, binary])
  // What npx finds on the path is the older one, where there is one.
  useFrom('npx, by the Node that came with it where its own is older', older ?? process.execPath, NPX)
  if (older) {
    test('an older Node without the one that came with it says what to do', async () => {
      const bare = join(folder, 'bare')
      mkdirSync(bare)
      await must('tar', ['xzf', tarball, '-C', bare], folder)
      const { code, stderr } = await run(older, [join(bare, 'package/bin/gamekeeper.js'), '--version'], bare)
      assert.equal(code, 1)
      assert.match(stderr, /^gamekeeper needs Node 26 or later and this is v\d+.*npm rebuild node/)
    })
  }

  test('the SDK has types that hold without those of Node', async () => {
    writeFileSync(join(user, 'consumer.ts'), CONSUMER)
    const options = { strict: true, noEmit: true, module: 'nodenext', target: 'es2024', types: [], skipLibCheck: false }
    writeFileSync(
      join(user, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: { ...options, lib: ['es2024', 'dom', 'dom.iterable', 'dom.asynciterable'] } }),
    )
    const { code, stdout } = await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc')], user)
    assert.equal(code, 0, stdout)
  })
})

// Here, so that the package is made once.
describeContainer(() => tarball)

function useFrom(name: string, node: string, started: readonly string[]): void {
  test(`service, command line and SDK work on ${name}`, async () => {
    const service = await serve(started)
    assert.equal((await fetch(`${service.url}/docs/`)).status, 200)
    assert.match(await (await fetch(service.url)).text(), /<script type="module"/)
    const env = { ...plainEnv(), ...COMPILED, GAMEKEEPER_URL: service.url, GAMEKEEPER_TOKEN: service.adminToken }
    const cli = async (...args: string[]) =>
      JSON.parse((await must(node, [binary, ...args, '--json'], user, env)).stdout)
    const doctor = await cli('doctor')
    assert.equal(doctor.findings[0].detail, process.version)
    await cli('server', 'create', 'Castle')
    writeFileSync(join(user, 'world.dat'), 'dragons\n'.repeat(10_000))
    await cli('files', 'put', 'Castle', 'world.dat')
    // Backups and searches work in threads of their own.
    assert.equal((await cli('backup', 'create', 'Castle')).status, 'completed')
    const found = await must(node, [binary, 'files', 'find', 'Castle', 'world'], user, env)
    assert.match(found.stdout, /world\.dat/)
    writeFileSync(join(user, 'program.js'), PROGRAM)
    assert.equal((await must(node, ['program.js'], user, env)).stdout, 'Castle completed 80000\n')
    await service.stop()
  })
}

/** The service with a data directory of its own. */
async function serve([file = '', ...args]: readonly string[]) {
  const env = {
    ...plainEnv(),
    ...COMPILED,
    GAMEKEEPER_PORT: '0',
    GAMEKEEPER_DATA_DIR: mkdtempSync(join(folder, 'data-')),
    GAMEKEEPER_LOG_LEVEL: 'fatal',
  }
  const child = spawn(file, [...args, 'serve', '--json'], { cwd: user, env, stdio: ['ignore', 'pipe', 'inherit'] })
  running.add(child)
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  const { url, adminToken } = JSON.parse(line) as { url: string; adminToken: string }
  return {
    url,
    adminToken,
    async stop() {
      child.kill('SIGTERM')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'close')
      running.delete(child)
      await assert.rejects(fetch(`${url}/healthz`))
    },
  }
}

const CHECKOUT = '{"name": "a-checkout", "private": true}'

const PROGRAM = `
import { createClient } from 'gamekeeper'
const client = createClient({ baseUrl: process.env.GAMEKEEPER_URL, token: process.env.GAMEKEEPER_TOKEN })
for await (const { id, name } of client.servers.all()) {
  const { data: [backup] } = await client.backups.list(id)
  const { bytes } = await client.files.download(id, '/world.dat')
  const content = await new Response(bytes).text()
  console.log(name, backup.status, content.length)
}
`

const CONSUMER = `
import { createClient, isApiError, type Server } from 'gamekeeper'
const client = createClient({ baseUrl: 'http://127.0.0.1:1', token: null })
export async function nameOf(id: string): Promise<string> {
  const server: Server = await client.servers.read(id)
  // @ts-expect-error: a name is a string
  const name: number = server.name
  return String(name)
}
export const isAbsent = (error: unknown): boolean => isApiError(error, 'not_found')
`
