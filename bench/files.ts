// How the files of a server, over the API, compare with the tools that everybody has, in the same run and taking turns:
// deleting 100,000 files with `rm -rf`, copying 1 GiB with `cp`, the first page of 100,000 entries with `ls -f`.
import { spawnSync } from 'node:child_process'
import { randomBytes, randomFillSync } from 'node:crypto'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawnService } from '../test/support/process.ts'
import { holds, median, table } from './measure.ts'

const GIB = 1024 ** 3

interface Bench {
  call(method: string, path: string, body?: object): Promise<void>
  /** The server's files, on the disk. */
  files: string
  /** Beside them, on the same disk. */
  base: string
}

interface Compared {
  name: string
  ours: number[]
  theirs: number[]
  atMost: number
}

export async function run(options: { files?: number; copyBytes?: number } = {}): Promise<boolean> {
  const { files = 100_000, copyBytes = GIB } = options
  const base = mkdtempSync(join(process.env.GAMEKEEPER_BENCH_DIR ?? tmpdir(), 'gamekeeper-bench-'))
  const token = `gk_admin_${randomBytes(32).toString('hex')}`
  const service = await spawnService({ GAMEKEEPER_DATA_DIR: base, GAMEKEEPER_ADMIN_TOKEN: token })
  try {
    const created = await request(service.url, token, 'POST', '/servers', { name: 'Castle' })
    const { id } = (await created.json()) as { id: string }
    const bench: Bench = {
      call: async (method, path, body) => {
        await (await request(service.url, token, method, `/files/${id}${path}`, body)).text()
      },
      files: join(base, 'servers', id, 'files'),
      base,
    }
    const compared = [await listing(bench, files), await deleting(bench, files), await copying(bench, copyBytes)]
    table([
      ['milliseconds, median', 'over HTTP', 'the tool', 'ratio', 'at most'],
      ...compared.map(({ name, ours, theirs, atMost }) => [
        name,
        median(ours),
        median(theirs),
        ratioOf(ours, theirs),
        atMost,
      ]),
    ])
    const held = compared.map(({ name, ours, theirs, atMost }) => holds(name, ratioOf(ours, theirs), '<=', atMost))
    return held.every(Boolean)
  } finally {
    await service.kill('SIGTERM')
    rmSync(base, { recursive: true, force: true })
  }
}

const ratioOf = (ours: number[], theirs: number[]) => median(ours) / median(theirs)

async function request(url: string, token: string, method: string, path: string, body?: object): Promise<Response> {
  const response = await fetch(`${url}/v1/game${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return response
}

async function listing({ call, files }: Bench, count: number): Promise<Compared> {
  makeFiles(join(files, 'many'), count, count)
  const times = await takeTurns(
    7,
    () => call('GET', '?path=/many'),
    () => command('ls', '-f', join(files, 'many')),
  )
  rmSync(join(files, 'many'), { recursive: true })
  return { name: `the first page of ${count} entries, to ls -f`, ...times, atMost: 3 }
}

async function deleting({ call, files, base }: Bench, count: number): Promise<Compared> {
  const ours: number[] = []
  const theirs: number[] = []
  for (let round = 0; round < 2; round++) {
    makeFiles(join(files, 'tree'), count, 100)
    makeFiles(join(base, 'theirs'), count, 100)
    command('sync')
    theirs.push(await timed(() => command('rm', '-rf', join(base, 'theirs'))))
    ours.push(await timed(() => call('DELETE', '', { root: '/', files: ['tree'] })))
    await call('DELETE', '/trash')
  }
  return { name: `deleting a tree of ${count} files, to rm -rf`, ours, theirs, atMost: 1 / 20 }
}

async function copying({ call, files }: Bench, bytes: number): Promise<Compared> {
  const original = join(files, 'big.bin')
  fill(original, bytes)
  command('sync')
  const cleanUp = () => {
    for (const name of ['big copy.bin', 'theirs.bin']) rmSync(join(files, name), { force: true })
    command('sync')
  }
  const ours = () => call('POST', '/copy', { location: '/big.bin' })
  const times = await takeTurns(5, ours, () => command('cp', original, join(files, 'theirs.bin')), cleanUp)
  return { name: `copying ${bytes} bytes, to cp`, ...times, atMost: 1.2 }
}

type Work = () => Promise<void> | void

/** Whoever goes first changes with every round, so that neither always finds the warmer cache. */
async function takeTurns(rounds: number, ours: Work, theirs: Work, between: Work = () => {}) {
  const times = { ours: [] as number[], theirs: [] as number[] }
  await ours()
  await between()
  for (let round = 0; round < rounds; round++) {
    const pair = [
      () => timed(ours).then((ms) => times.ours.push(ms)),
      () => timed(theirs).then((ms) => times.theirs.push(ms)),
    ]
    for (const work of round % 2 ? pair : pair.reverse()) {
      await work()
      await between()
    }
  }
  return times
}

async function timed(work: Work): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

function command(name: string, ...args: string[]): void {
  const { status } = spawnSync(name, args, { stdio: 'ignore' })
  if (status !== 0) throw new Error(`${name} failed`)
}

function makeFiles(folder: string, count: number, aDirectory: number): void {
  for (let made = 0; made < count; made++) {
    const parent = aDirectory >= count ? folder : join(folder, `${Math.floor(made / aDirectory)}`)
    if (made % aDirectory === 0) mkdirSync(parent, { recursive: true })
    closeSync(openSync(join(parent, `file-${made}.txt`), 'w'))
  }
}

function fill(path: string, bytes: number): void {
  const chunk = randomFillSync(Buffer.alloc(1024 * 1024))
  const fd = openSync(path, 'w')
  for (let written = 0; written < bytes; written += chunk.length) writeSync(fd, chunk)
  closeSync(fd)
}
