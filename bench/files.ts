// How the files of a server compare with the tools that everybody has, in the same run and taking turns:
// deleting 100,000 files with `rm -rf`, copying 1 GiB with `cp`, the first page of 100,000 entries with `ls -f`.
import { spawnSync } from 'node:child_process'
import { randomFillSync } from 'node:crypto'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createAgentFiles, type FilesOfAgent } from '../src/agent/files/index.ts'
import { layout } from '../src/agent/layout.ts'

const serverId = 'srv_bench'
const GIB = 1024 ** 3

export interface Ratio {
  name: string
  oursMs: number
  theirsMs: number
  ratio: number
  atMost: number
}

interface Bench {
  agent: FilesOfAgent
  files: string
  base: string
}

export async function run(options: { files?: number; copyBytes?: number } = {}): Promise<Ratio[]> {
  const { files = 100_000, copyBytes = GIB } = options
  const base = mkdtempSync(join(process.env.GAMEKEEPER_BENCH_DIR ?? tmpdir(), 'gamekeeper-bench-'))
  try {
    const places = layout(base)
    mkdirSync(places.server(serverId).files, { recursive: true })
    const agent = createAgentFiles({ layout: places, onUnexpected: console.error })
    await agent.start()
    await agent.sweep()
    const bench: Bench = { agent, files: places.server(serverId).files, base }
    const ratios = [await listing(bench, files), await deleting(bench, files), await copying(bench, copyBytes)]
    for (const { name, oursMs, theirsMs, ratio, atMost } of ratios)
      console.log(
        `${ratio <= atMost ? 'ok  ' : 'MISS'} ${name}: ${oursMs.toFixed(1)} ms against ${theirsMs.toFixed(1)} ms, ratio ${ratio.toFixed(3)} (at most ${atMost})`,
      )
    await agent.stop()
    return ratios
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
}

async function listing({ agent, files }: Bench, count: number): Promise<Ratio> {
  makeFiles(join(files, 'many'), count, count)
  const list = async () => {
    await agent.list({ serverId, path: '/many' })
  }
  const ls = () => command('ls', '-f', join(files, 'many'))
  const times = await takeTurns(7, list, ls)
  rmSync(join(files, 'many'), { recursive: true })
  return compare(`first page of ${count} entries against ls -f`, times, 3)
}

async function deleting({ agent, files, base }: Bench, count: number): Promise<Ratio> {
  const ours: number[] = []
  const theirs: number[] = []
  for (let round = 0; round < 2; round++) {
    makeFiles(join(files, 'tree'), count, 100)
    makeFiles(join(base, 'theirs'), count, 100)
    theirs.push(await timed(() => command('rm', '-rf', join(base, 'theirs'))))
    const request = { serverId, requestId: `delete ${round}`, root: '/', files: ['tree'] }
    ours.push(await timed(async () => void (await agent.remove(request))))
    await agent.emptyTrash({ serverId })
  }
  return compare(`deleting a tree of ${count} files against rm -rf`, { ours, theirs }, 1 / 20)
}

async function copying({ agent, files }: Bench, bytes: number): Promise<Ratio> {
  const original = join(files, 'big.bin')
  fill(original, bytes)
  let round = 0
  const ours = async () => {
    await agent.copy({ serverId, requestId: `copy ${round++}`, location: '/big.bin' })
  }
  const cleanUp = () => {
    for (const name of ['big copy.bin', 'theirs.bin']) rmSync(join(files, name), { force: true })
    command('sync')
  }
  const times = await takeTurns(3, ours, () => command('cp', original, join(files, 'theirs.bin')), cleanUp)
  return compare(`copying ${bytes} bytes against cp`, times, 1.2)
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

function compare(name: string, times: { ours: number[]; theirs: number[] }, atMost: number): Ratio {
  const oursMs = median(times.ours)
  const theirsMs = median(times.theirs)
  return { name, oursMs, theirsMs, ratio: oursMs / theirsMs, atMost }
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
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

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await run()
