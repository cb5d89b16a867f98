// What the targets of archives share: a server on a disk into which an archive is unpacked, and what must be so afterwards,
// whatever the archive was.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { archiveOf, entry } from '../../../src/agent/files/archives/archives.testing.ts'
import { UNPACK_LIMITS, unpack } from '../../../src/agent/files/archives/unpack.ts'
import { createAgentFiles } from '../../../src/agent/files/index.ts'
import { openDescriptors } from '../../../src/agent/files/trees.testing.ts'
import { layout } from '../../../src/agent/layout.ts'
import type { ArchiveFormat } from '../../../src/contract/agent/agent-files.ts'
import { isFailure } from '../../../src/contract/errors.ts'
import { scratchBase } from '../../support/scratch.ts'

const MIB = 1024 * 1024
const QUOTA_BYTES = 24 * MIB
const LIMITS = { ...UNPACK_LIMITS, harmlessBytes: 8 * MIB, maxEntries: 2000 }
/** Beyond what was there before the first input. */
const GROWTH_BYTES_MAX = 1024 * MIB
const serverId = 'srv_fuzz'

type House = Awaited<ReturnType<typeof open>>
let house: Promise<House> | undefined

async function open() {
  const dataDir = mkdtempSync(join(scratchBase(), 'gamekeeper-fuzz-'))
  const places = layout(dataDir)
  mkdirSync(places.server(serverId).files, { recursive: true })
  const unexpected: unknown[] = []
  const agent = createAgentFiles({ layout: places, onUnexpected: (error) => unexpected.push(error) })
  await agent.start()
  await agent.setQuota({ serverId, quotaBytes: QUOTA_BYTES, maxEntries: null })
  return { agent, dataDir, server: agent.server(serverId), unexpected, startBytes: process.memoryUsage.rss() }
}

export async function closeHouse(): Promise<void> {
  if (!house) return
  const { agent, dataDir } = await house
  await agent.stop()
  rmSync(dataDir, { recursive: true, force: true })
}

let count = 0

/** Unpacks, or is refused in words; in both cases nothing is outside, in staging, reserved or open. */
export async function tryUnpacking(archive: Uint8Array): Promise<void> {
  house ??= open()
  const { agent, server, dataDir, unexpected, startBytes } = await house
  const { files, staging } = server.folders
  writeFileSync(join(files, 'a'), archive)
  const context = { taskId: `job_${++count}`, signal: new AbortController().signal, report: () => {} }
  let isRefused = false
  try {
    await unpack(server, { kind: 'files.unpack', path: '/a', directory: '/out' }, context, LIMITS)
  } catch (error) {
    if (!isFailure(error, 'invalid_archive') && !isFailure(error, 'quota_exceeded')) throw error
    isRefused = true
  }
  assert.deepEqual(readdirSync(staging), [], 'something is left in staging')
  assert.deepEqual(readdirSync(files).sort(), isRefused ? ['a'] : ['a', 'out'])
  if (!isRefused) assertInside(join(files, 'out'), '')
  rmSync(join(files, 'out'), { recursive: true, force: true })
  assert.equal((await agent.usage({ serverId })).reservedBytes, 0, 'space stays reserved')
  // A read that was under way when the archive was refused ends by itself.
  await new Promise((resolve) => setImmediate(resolve))
  const left = openDescriptors().filter((path) => path.startsWith(files) || path.startsWith(staging))
  assert.deepEqual(left, [], `${dataDir}: descriptors are left open`)
  assert.deepEqual(unexpected, [])
  assert.ok(process.memoryUsage.rss() - startBytes < GROWTH_BYTES_MAX, 'memory grows')
}

/** Files, directories, and links that lead nowhere else, by way of one another too. */
function assertInside(top: string, path: string): void {
  for (const name of readdirSync(join(top, path), { encoding: 'buffer' })) {
    const at = Buffer.concat([Buffer.from(`${join(top, path)}/`), name])
    const stats = lstatSync(at)
    const text = name.toString('latin1')
    assert.ok(stats.isFile() || stats.isDirectory() || stats.isSymbolicLink(), `${text} is neither file nor directory`)
    assert.equal(stats.mode & 0o7000, 0, `${text} has a mode beyond 0777`)
    if (stats.isSymbolicLink()) assertLinkInside(readlinkSync(at, { encoding: 'buffer' }).toString('latin1'), path)
    if (stats.isDirectory() && name.toString() !== text) continue
    if (stats.isDirectory()) assertInside(top, join(path, text))
  }
}

/** Sound whatever the names in it are: up first, and no further than the top, then down. */
function assertLinkInside(target: string, path: string): void {
  const names = target.split('/').filter((name) => name !== '' && name !== '.')
  const ups = names.findIndex((name) => name !== '..')
  const depth = path === '' ? 0 : path.split('/').length
  assert.ok(!target.startsWith('/') && (ups === -1 ? names.length : ups) <= depth, `${path}: a link leaves: ${target}`)
  assert.ok(ups === -1 || !names.slice(ups).includes('..'), `${path}: a link could leave: ${target}`)
}

/** What honest tools make of a small tree. */
export async function honestArchives(format: ArchiveFormat): Promise<Buffer[]> {
  const entries = [
    entry('world', { kind: 'directory' }),
    entry('world/level.dat', { text: 'level'.repeat(300) }),
    entry(`world/${'long-'.repeat(40)}name.txt`, { text: 'long' }),
    entry('world/naïve ☃.txt', { text: 'snow' }),
    entry('world/region/r.0.0.mca', { text: Buffer.alloc(5000, 7) }),
    entry('world/link', { kind: 'symlink', target: 'region/r.0.0.mca' }),
    entry('world/region/up', { kind: 'symlink', target: '../level.dat' }),
    entry('zero', { text: '' }),
  ]
  return [await archiveOf(format, entries), ...madeByTools(format)]
}

function madeByTools(format: ArchiveFormat): Buffer[] {
  const cwd = mkdtempSync(join(scratchBase(), 'gamekeeper-fuzz-'))
  try {
    mkdirSync(join(cwd, 'w/d'), { recursive: true })
    writeFileSync(join(cwd, 'w/a.txt'), 'text'.repeat(200))
    writeFileSync(join(cwd, `w/d/${'n'.repeat(150)}`), 'long')
    symlinkSync('a.txt', join(cwd, 'w/link'))
    const made = (command: string, ...args: string[]) => {
      execFileSync(command, args, { cwd })
      const archive = readFileSync(join(cwd, 'made'))
      rmSync(join(cwd, 'made'))
      return archive
    }
    if (format === 'zip')
      return [made('sh', '-c', 'zip -qry made.zip w && mv made.zip made'), made('sh', '-c', 'zip -qr0 - w > made')]
    return ['gnu', 'posix', 'oldgnu'].map((kind) => made('tar', `--format=${kind}`, '-cf', 'made', 'w'))
  } finally {
    rmSync(cwd, { recursive: true, force: true })
  }
}
