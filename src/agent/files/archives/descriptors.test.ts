// An archive that is refused in the middle closes its own descriptor, once, and nobody else's. That nothing is closed
// twice or used after it was closed is seen by the preload of the test suite, which fails the test then.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { closeSync, mkdirSync, openSync, readFileSync, readSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { openDescriptors, untilDescriptors } from '../trees.testing.ts'
import { archiveOf, entry, start } from './archives.testing.ts'
import { pack } from './pack.ts'
import { unpack } from './unpack.ts'

const LARGE_BYTES = 3 * 1024 * 1024

/** A file that stays open all the while: what is in its place at the end is not ours any more. */
function openMany(path: string): Disposable & { check(): void } {
  const numbers = Array.from({ length: 64 }, () => openSync(path, 'r'))
  const byte = Buffer.alloc(1)
  return {
    check() {
      for (const number of numbers) assert.equal(readSync(number, byte, 0, 1, 0), 1)
    },
    [Symbol.dispose]() {
      for (const number of numbers) closeSync(number)
    },
  }
}

async function lyingZip(): Promise<Buffer> {
  const zip = await archiveOf('zip', [entry('f', { text: randomBytes(LARGE_BYTES) })])
  const central = zip.lastIndexOf(Buffer.from('PK\x01\x02', 'latin1'))
  zip.writeUInt32LE(1000, central + 24)
  return zip
}

async function damagedTar(): Promise<Buffer> {
  const tar = await archiveOf('tar', [entry('f', { text: 'x' }), entry('g', { text: randomBytes(LARGE_BYTES) })])
  // The header of the second file.
  tar.fill(0x7f, 1024, 1536)
  return tar
}

const REFUSED: Record<string, () => Promise<Uint8Array>> = {
  'a zip whose directory lies about a size': lyingZip,
  'a tar that is damaged': damagedTar,
  'a tar.gz that is damaged': async () => gzipSync(await damagedTar(), { level: 1 }),
}

for (const [what, make] of Object.entries(REFUSED))
  test(`${what} is refused in mid-read and closes its descriptor once`, async (t) => {
    const { server, at, staged, context } = await start(t)
    writeFileSync(at('a'), await make())
    const before = openDescriptors()
    for (let round = 0; round < 3; round++) {
      const work = unpack(server, { kind: 'files.unpack', path: '/a', directory: '/out' }, context)
      await assert.rejects(work, { code: 'invalid_archive' })
      // Whoever opens a file now gets a number that was just given back.
      using others = openMany(at('a'))
      await new Promise(setImmediate)
      await new Promise(setImmediate)
      others.check()
    }
    assert.deepEqual(staged(), [])
    await untilDescriptors(before)
  })

for (const format of ['zip', 'tar', 'tar.gz', 'tar.zst'] as const)
  test(`${format}: a pack that is refused since its target is there leaves nothing open`, async (t) => {
    const { server, at, context } = await start(t)
    mkdirSync(at('world'))
    for (const name of ['a', 'b']) writeFileSync(at(`world/${name}`), randomBytes(LARGE_BYTES))
    writeFileSync(at('there'), 'as it was')
    const before = openDescriptors()
    const work = { kind: 'files.pack' as const, root: '/', files: ['world'], format, target: '/there' }
    for (let round = 0; round < 3; round++)
      await assert.rejects(pack(server, work, { ...context, taskId: `${round}` }), { code: 'already_exists' })
    await new Promise(setImmediate)
    await untilDescriptors(before)
    assert.equal(readFileSync(at('there'), 'utf8'), 'as it was')
  })
