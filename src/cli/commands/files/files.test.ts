import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Ran } from '../../../../test/support/ran.ts'
import { startTestService, type TestService } from '../../../../test/support/service.ts'
import { runAtTerminal, runBinary, runPiped, startBinary } from '../../../../test/support/terminal.ts'
import { startProxy } from '../../../../test/support/unreliable.ts'
import { until } from '../../../../test/support/until.ts'

const MIB = 1024 * 1024

let service: TestService
let folder: string
let serverId: string
before(async () => {
  service = await startTestService()
  folder = mkdtempSync(join(tmpdir(), 'gamekeeper-cli-files-'))
  serverId = (await service.createServer({ name: 'Castle' })).id
})
after(async () => {
  await service.stop()
  rmSync(folder, { recursive: true })
})

const envOf = (url = service.url) => ({ GAMEKEEPER_URL: url, GAMEKEEPER_TOKEN: service.adminToken })
const run = (...args: string[]): Promise<Ran> => runPiped(['files', ...args], envOf())
const local = (path: string) => join(folder, path)
const remote = (path: string) => join(service.dataDir, 'servers', serverId, 'files', path)
const staged = () =>
  readdirSync(join(service.dataDir, 'servers', serverId, 'staging')).filter((name) => !name.endsWith('.json'))

async function json(...args: string[]) {
  const { code, stdout, stderr } = await run(...args, '--json')
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout)
}

function localTree(): string {
  const root = mkdtempSync(join(folder, 'tree-'))
  mkdirSync(join(root, 'world/region'), { recursive: true })
  mkdirSync(join(root, 'world/empty'))
  for (let i = 0; i < 20; i++) writeFileSync(join(root, `world/region/r.${i}.mca`), randomBytes(5000 + i))
  writeFileSync(join(root, 'world/level.dat'), randomBytes(3 * MIB))
  writeFileSync(join(root, 'world/nothing'), '')
  symlinkSync('level.dat', join(root, 'world/link'))
  return root
}

describe('put and get', () => {
  test('a directory goes there and comes back as an archive of the same', async () => {
    const root = localTree()
    const { code, stdout, stderr } = await runBinary(['files', 'put', 'Castle', 'world'], { env: envOf(), cwd: root })
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^22 files {2}3\.1 MiB\n$/)
    assert.match(stderr, /Skipped world\/link/)
    rmSync(join(root, 'world/link'))
    execFileSync('diff', ['-r', join(root, 'world'), remote('world')])
    const back = await runBinary(['files', 'get', 'Castle', '/world', '--format', 'tar'], { env: envOf(), cwd: root })
    assert.equal(back.code, 0, back.stderr)
    mkdirSync(join(root, 'back'))
    execFileSync('tar', ['-xf', join(root, 'world.tar'), '-C', join(root, 'back')])
    execFileSync('diff', ['-r', join(root, 'world'), join(root, 'back/world')])
  })

  test('one file to a path of its own, and back under a name, to standard output and over what is there', async () => {
    writeFileSync(local('a.txt'), 'first')
    assert.deepEqual(await json('put', serverId, local('a.txt'), '--as', '/deep/b.txt'), {
      uploaded: [{ path: '/deep/b.txt', sizeBytes: 5 }],
      leftOut: [],
    })
    assert.equal((await run('get', 'Castle', '/deep/b.txt', '-')).stdout, 'first')
    assert.equal((await run('get', 'Castle', '/deep/b.txt', local('c.txt'))).code, 0)
    assert.equal(readFileSync(local('c.txt'), 'utf8'), 'first')
    writeFileSync(local('c.txt'), 'mine')
    const refused = await run('get', 'Castle', '/deep/b.txt', local('c.txt'))
    assert.equal(refused.code, 5)
    assert.match(refused.stderr, /--force/)
    assert.equal(readFileSync(local('c.txt'), 'utf8'), 'mine')
    await json('get', 'Castle', '/deep/b.txt', local('c.txt'), '--force')
    assert.equal(readFileSync(local('c.txt'), 'utf8'), 'first')
  })

  test('what is refused has its exit code and changes nothing', async () => {
    writeFileSync(local('taken.txt'), 'new')
    writeFileSync(remote('taken.txt'), 'old')
    assert.equal((await run('put', 'Castle', local('taken.txt'), '--no-overwrite')).code, 5)
    assert.equal((await run('put', 'Castle', local('taken.txt'), local('a.txt'), '--no-overwrite')).code, 5)
    assert.equal(readFileSync(remote('taken.txt'), 'utf8'), 'old')
    assert.ok(!readdirSync(remote('')).includes('a.txt'), 'all of them, or none')
    assert.equal((await run('put', 'Castle', local('absent'))).code, 4)
    assert.equal((await run('put', 'Castle', local('a.txt'), '--as', '/../x')).code, 2)
    assert.equal((await run('put', 'Castle', local('a.txt'), local('taken.txt'), '--as', '/x')).code, 2)
    assert.equal((await run('get', 'Castle', '/absent', local('x'))).code, 4)
    assert.equal((await run('get', 'Castle', '/deep', local('x'), '--format', 'rar')).code, 2)
    assert.equal((await run('get', 'Castle', '/deep/b.txt', local('no/such/folder'))).code, 1)
    assert.ok(!readdirSync(folder).some((name) => name === 'x' || name.endsWith('.part')))
    assert.deepEqual(staged(), [])
  })

  test('a bar is drawn on a terminal and nowhere else', async () => {
    writeFileSync(local('big.bin'), randomBytes(9 * MIB))
    const { stderr } = await runAtTerminal(['files', 'put', 'Castle', local('big.bin')], envOf())
    assert.match(stderr, /Uploading {2}\[#+-*\] +\d+% .* of 9\.0 MiB/)
    assert.equal((await run('put', 'Castle', local('big.bin'))).stderr, '')
    assert.match(
      (await runAtTerminal(['files', 'get', 'Castle', '/big.bin', local('big2.bin')], envOf())).stderr,
      /big\.bin {2}\[/,
    )
  })
})

test('Both show progress on a terminal, and resume by themselves when the connection breaks or the service restarts.', async () => {
  const port = await freePort()
  const events = new Map<number, () => unknown>()
  await using proxy = await startProxy(`http://127.0.0.1:${port}`, (total) => {
    for (const [at, act] of events) {
      if (total < at) continue
      events.delete(at)
      void act()
    }
  })
  await using shaky = await startTestService({
    env: { GAMEKEEPER_PORT: String(port), GAMEKEEPER_PUBLIC_URL: proxy.url },
  })
  await shaky.createServer({ name: 'Shaky' })
  const env = { GAMEKEEPER_URL: proxy.url, GAMEKEEPER_TOKEN: shaky.adminToken }
  const bytes = randomBytes(30 * MIB)
  writeFileSync(local('large.bin'), bytes)
  const misfortune = [
    [6, () => proxy.cut()],
    [12, () => shaky.restart()],
    [18, () => proxy.cut()],
    [50, () => proxy.cut()],
    [55, () => shaky.restart()],
  ] as const
  for (const [at, act] of misfortune) events.set(at * MIB, act)
  const put = await runBinary(['files', 'put', 'Shaky', local('large.bin')], { env })
  assert.equal(put.code, 0, put.stderr)
  const got = await runBinary(['files', 'get', 'Shaky', '/large.bin', local('larger.bin')], { env })
  assert.equal(got.code, 0, got.stderr)
  assert.deepEqual(readFileSync(local('larger.bin')), bytes)
  assert.equal(events.size, 0, 'all of it has happened')
})

/** A port that the service can have again after a restart. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

test('interrupted, put leaves nothing on the server, and get nothing here', async () => {
  // Long on the way, and nothing to read from the disk.
  for (const path of [local('huge.bin'), remote('out.bin')]) {
    writeFileSync(path, '')
    truncateSync(path, 400 * MIB)
  }
  const putting = startBinary(['files', 'put', 'Castle', local('huge.bin')], { env: envOf() })
  await until(async () => staged().length > 0)
  putting.kill('SIGINT')
  assert.deepEqual(await once(putting, 'exit'), [130, null])
  assert.deepEqual(staged(), [])
  assert.ok(!readdirSync(remote('')).includes('huge.bin'))
  const getting = startBinary(['files', 'get', 'Castle', '/out.bin', local('out.bin')], { env: envOf() })
  await until(async () => readdirSync(folder).some((name) => name.endsWith('.part')))
  getting.kill('SIGINT')
  assert.deepEqual(await once(getting, 'exit'), [130, null])
  assert.ok(!readdirSync(folder).some((name) => name.startsWith('out.bin') || name.endsWith('.part')))
  rmSync(remote('out.bin'))
})

describe('the rest', () => {
  const lines = async (...args: string[]) => (await run(...args)).stdout.trim().split('\n')

  test('mkdir, ls, cp and mv', async () => {
    assert.equal((await json('mkdir', 'Castle', '/m/n/')).path, '/m/n')
    writeFileSync(remote('m/b.txt'), 'bb')
    writeFileSync(remote('m/a\u001b[2J.txt'), 'a')
    symlinkSync('b.txt', remote('m/link'))
    const listed = await lines('ls', 'Castle', '/m')
    assert.match(listed[0] ?? '', /^MODE +SIZE +CHANGED +NAME$/)
    assert.deepEqual(
      listed.slice(1).map((line) => line.split(/ {2,}/).at(-1)),
      ['n/', 'a\\u001b[2J.txt', 'b.txt', 'link -> b.txt'],
    )
    assert.deepEqual(
      (await json('ls', 'Castle', '/m', '--sort', 'size', '--reverse', '--limit', '2')).map(
        ({ name }: { name: string }) => name,
      ),
      ['n', 'b.txt'],
    )
    assert.match((await run('ls', 'Castle', '/m/n')).stderr, /empty/)
    assert.equal((await json('cp', 'Castle', '/m/b.txt')).path, '/m/b copy.txt')
    assert.equal((await json('cp', 'Castle', '/m/b.txt', '/m/n/')).path, '/m/n/b.txt')
    assert.equal((await run('cp', 'Castle', '/m/b.txt', '/m/n/b.txt')).code, 5)
    assert.deepEqual(
      readdirSync(remote('m')).filter((name) => name.startsWith('b')),
      ['b copy.txt', 'b.txt'],
    )
    assert.equal((await json('mv', 'Castle', '/m/b copy.txt', '/m/n/')).path, '/m/n/b copy.txt')
    assert.equal((await run('mv', 'Castle', '/m/b.txt', '/m/n/b.txt')).code, 5)
    assert.equal((await run('mv', 'Castle', '/m/b.txt', '/m/n/b.txt', '--overwrite')).code, 0)
    assert.equal((await run('ls', 'Castle', '/m', '--sort', 'colour')).code, 2)
    assert.equal((await run('ls', 'Castle', '/absent')).code, 4)
  })

  test('undo brings back everything the last rm deleted, or the items you name, by id or by path', async () => {
    for (const name of ['r1', 'r2', 'r3']) writeFileSync(remote(name), name)
    assert.deepEqual(await json('rm', 'Castle', '/r1'), { deleted: ['/r1'], missing: [] })
    const partly = await run('rm', 'Castle', '/r2', '/r3', '/r4')
    assert.equal(partly.code, 4)
    assert.match(partly.stdout, /Deleted \/r2\nDeleted \/r3/)
    assert.match(partly.stderr, /no \/r4/)
    assert.equal((await run('rm', 'Castle', '/')).code, 2)
    const items = await json('trash', 'Castle')
    assert.deepEqual(
      items
        .slice(0, 3)
        .map(({ path }: { path: string }) => path)
        .sort(),
      ['/r1', '/r2', '/r3'],
    )
    assert.match((await run('trash', 'Castle', '--limit', '3')).stdout, /ITEM +WHEN +WHY +KEPT +PATH/)
    writeFileSync(remote('r3'), 'another')
    const undone = await lines('undo', 'Castle')
    assert.deepEqual(undone, ['Restored /r2', 'Restored /r3 as /r3 restored'])
    assert.equal(readFileSync(remote('r3 restored'), 'utf8'), 'r3')
    assert.equal((await json('undo', 'Castle', 'r1')).restored[0].path, '/r1')
    assert.equal((await run('undo', 'Castle', 'r1')).code, 4)
    assert.equal((await run('trash', 'Castle', '--empty')).code, 2)
    const kept = await runAtTerminal(['files', 'trash', 'Castle', '--empty'], envOf(), ['no'])
    assert.equal(kept.code, 1)
    assert.ok((await json('trash', 'Castle')).length > 0)
    const emptied = await runAtTerminal(['files', 'trash', 'Castle', '--empty'], envOf(), ['yes'])
    assert.match(emptied.stdout, /^Freed /)
    assert.deepEqual(await json('trash', 'Castle'), [])
    assert.equal((await run('undo', 'Castle')).code, 4)
  })

  test('pack, unpack, pull, find and usage', async () => {
    mkdirSync(remote('p'))
    writeFileSync(remote('p/one.txt'), 'hello there')
    const packed = await json('pack', 'Castle', '/p', '--to', '/p.tar.gz')
    assert.deepEqual([packed.status, packed.result.path], ['completed', '/p.tar.gz'])
    assert.equal((await run('pack', 'Castle', '/p', '--to', '/p.tar.gz')).code, 1)
    assert.match((await run('unpack', 'Castle', '/p.tar.gz', '/q')).stdout, /^Done: \/q\n$/)
    assert.equal(readFileSync(remote('q/p/one.txt'), 'utf8'), 'hello there')
    assert.match((await run('unpack', 'Castle', '/p.tar.gz', '/z', '--no-wait')).stdout, /^Started as job_/)
    const inside = await run('pull', 'Castle', 'http://127.0.0.1:1/x')
    assert.equal(inside.code, 1)
    assert.match(inside.stderr, /not on the public Internet/)
    assert.deepEqual(await lines('find', 'Castle', 'hello', '--content', '--path', '/q'), [
      '/q/p/one.txt:1: hello there',
    ])
    assert.match((await run('find', 'Castle', 'nowhere-at-all')).stderr, /Nothing was found/)
    assert.ok((await json('usage', 'Castle')).usedBytes > MIB)
    assert.match((await run('usage', 'Castle')).stdout, /Quota +no limit/)
  })
})
