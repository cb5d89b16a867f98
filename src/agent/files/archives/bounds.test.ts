// What an archive can make us keep, read or do is bounded, whatever it says.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { crc32, gzipSync, zstdCompressSync } from 'node:zlib'
import { TAR_EXTENDED_MAX_BYTES, TAR_EXTENDED_MAX_HEADERS } from '../../../contract/fixed-limits.ts'
import { start } from './archives.testing.ts'
import { paxRecord, TAR_END, tarHeader, tarMember, type ZipPart, zipOf } from './spoiled.testing.ts'
import { UNPACK_LIMITS, unpack } from './unpack.ts'

const WORK = { kind: 'files.unpack', path: '/a', directory: '/out' } as const
const FILE = tarMember({ name: 'f', type: '0' }, Buffer.from('content'))
const whole = (...members: Uint8Array[]) => Buffer.concat([...members, TAR_END])
const times = (count: number, make: (index: number) => Buffer) =>
  Buffer.concat(Array.from({ length: count }, (_, index) => make(index)))
const pax = (...records: Buffer[]) => tarMember({ type: 'x' }, Buffer.concat(records))
const zip = (parts: ZipPart[], options: { order?: number[]; count?: number } = {}) =>
  zipOf(parts, { crcOf: (data) => crc32(data), ...options })

async function refuse(t: TestContext, archive: Uint8Array, limits = UNPACK_LIMITS) {
  const { server, at, tree, staged, context } = await start(t)
  writeFileSync(at('a'), archive)
  await assert.rejects(unpack(server, WORK, context, limits), { code: 'invalid_archive' })
  assert.deepEqual(tree(), ['a'])
  assert.deepEqual(staged(), [])
}

async function accept(t: TestContext, archive: Uint8Array) {
  const { server, at, tree, staged, context } = await start(t)
  writeFileSync(at('a'), archive)
  await unpack(server, WORK, context)
  assert.deepEqual(staged(), [])
  return {
    names: tree().filter((path) => path.startsWith('out/')),
    read: (path: string) => readFileSync(at(path), 'utf8'),
  }
}

test('tar: of what pax records say, only what is used is kept', async (t) => {
  const many = times(2000, (index) => paxRecord(`comment.${index}`, 'x'))
  const archive = whole(pax(many, paxRecord('path', 'renamed'), paxRecord('mtime', '12.5')), FILE)
  const { names, read } = await accept(t, archive)
  assert.deepEqual(names, ['out/renamed'])
  assert.equal(read('out/renamed'), 'content')
})

const ENDLESS: Record<string, (index: number) => Buffer> = {
  'pax headers': (index) => pax(paxRecord(`k${index}`, 'v'.repeat(60))),
  'global headers': () => tarMember({ type: 'g' }, paxRecord('comment', 'x')),
  'long names': (index) => tarMember({ type: 'L' }, Buffer.from(`name${index}\0`)),
  'long targets': () => tarMember({ type: 'K' }, Buffer.from('target\0')),
}
for (const [what, header] of Object.entries(ENDLESS))
  test(`tar: more ${what} than an entry can have are refused, and as many as it can are read`, async (t) => {
    await refuse(t, whole(times(TAR_EXTENDED_MAX_HEADERS + 1, header), FILE))
    const full = times(TAR_EXTENDED_MAX_HEADERS, header)
    const [first, second] = ['f', 'g'].map((name) => tarMember({ name, type: '0' }, Buffer.from('x')))
    const { names } = await accept(t, whole(full, first as Buffer, header(0), second as Buffer))
    // The last of them is the name.
    assert.deepEqual(names, what === 'long names' ? ['out/name0', 'out/name15'] : ['out/f', 'out/g'])
  })

test('tar: extended headers of one entry have a size in all', async (t) => {
  const half = paxRecord('comment', 'x'.repeat(TAR_EXTENDED_MAX_BYTES / 2))
  await refuse(t, whole(pax(half), pax(half), FILE))
})

const MALFORMED: Record<string, Buffer> = {
  'a record without a length': Buffer.from(' path=x\n'),
  'a record that is longer than its header': Buffer.from('99 path=x\n'),
  'a record of no length': Buffer.from('0 path=x\n'),
  'a length that is no number': Buffer.from('1e1 path=x\n'),
  'a record without a value': Buffer.from('7 path\n'),
  'a size that is no number': paxRecord('size', '7x'),
  'a name longer than any path': paxRecord('path', 'x/'.repeat(3000)),
  // What a regular expression would look through again from every slash.
  'a name of slashes': paxRecord('path', `${'/'.repeat(200_000)}x`),
  'a sparse file': paxRecord('GNU.sparse.major', '1'),
}
for (const [what, body] of Object.entries(MALFORMED))
  test(`tar: ${what} is refused`, (t) => refuse(t, whole(tarMember({ type: 'x' }, body), FILE)))

test('All inflated bytes count, including headers and skipped data', async (t) => {
  const limits = { ...UNPACK_LIMITS, harmlessBytes: 1024 * 1024 }
  const big = paxRecord('comment', 'x'.repeat(TAR_EXTENDED_MAX_BYTES - 1024))
  const stretch = whole(times(40, () => Buffer.concat([pax(big), tarHeader({ name: 'd', type: '5' })])))
  assert.ok(stretch.length > 4 * 1024 * 1024)
  await refuse(t, gzipSync(stretch), limits)
  await refuse(t, zstdCompressSync(stretch), limits)
})

const NAMES = ['a', 'b', 'c', 'd', 'e']
const PARTS: ZipPart[] = NAMES.map((name) => ({ name, data: `content of ${name}` }))

test('zip: the directory may have any order', async (t) => {
  const { names, read } = await accept(t, zip(PARTS, { order: [3, 0, 4, 2, 1] }))
  assert.deepEqual(
    names,
    NAMES.map((name) => `out/${name}`),
  )
  for (const name of NAMES) assert.equal(read(`out/${name}`), `content of ${name}`)
})

const OVERLAPS: Record<string, Buffer> = {
  'two records of one entry': zip([...PARTS, { name: 'a', data: '', says: { offset: 0 } }]),
  'an entry that reaches into the next': zip([
    { name: 'a', data: 'x', says: { compressed: 30, size: 30 } },
    { name: 'b', data: 'y' },
  ]),
  'an entry that reaches into the directory': zip([{ name: 'a', data: 'x', says: { compressed: 30, size: 30 } }]),
  'a directory with fewer entries than it says': zip(PARTS, { count: 6 }),
  'a name longer than any path': zip([{ name: 'x/'.repeat(3000) }]),
  'a name of slashes': zip([{ name: `${'/'.repeat(60_000)}x` }]),
}
for (const [what, archive] of Object.entries(OVERLAPS)) test(`zip: ${what} is refused`, (t) => refuse(t, archive))

test('directories that do not fit the quota are refused as they are made, not when all of them are', async (t) => {
  const { server, at, staged, context } = await start(t)
  writeFileSync(at('a'), whole(times(3000, (index) => tarMember({ name: `d${index}/`, type: '5' }, Buffer.alloc(0)))))
  await server.usage.rescan()
  server.setQuota({ bytes: 4 * 1024 * 1024, entries: null })
  let made = 0
  const report = () => void made++
  await assert.rejects(unpack(server, WORK, { ...context, report }), { code: 'quota_exceeded' })
  assert.ok(made <= 1024, `${made} directories were made for a quota that holds fewer than 1,024`)
  assert.deepEqual(staged(), [])
})
