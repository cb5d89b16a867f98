import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { deflateRawSync, gzipSync } from 'node:zlib'
import type { ArchiveFormat } from '../../../contract/agent/agent-files.ts'
import { type ErrorCode, isFailure } from '../../../contract/errors.ts'
import { fillTree, openDescriptors } from '../trees.testing.ts'
import { entry, serverId, start } from './archives.testing.ts'
import type { ArchiveEntry } from './entry.ts'
import { writeArchive } from './formats.ts'
import { type PackWork, pack } from './pack.ts'
import { UNPACK_LIMITS, unpack } from './unpack.ts'

const code = (expected: ErrorCode) => (error: unknown) => isFailure(error, expected)
const FORMATS: ArchiveFormat[] = ['zip', 'tar', 'tar.gz', 'tar.zst']

const SAMPLE = {
  'world/level.dat': Buffer.alloc(300_000, 7),
  'world/empty/': '',
  'world/zero': '',
  [`world/${'long-'.repeat(40)}name.txt`]: 'long',
  'world/naïve ☃.txt': 'snow',
}

for (const format of FORMATS) {
  test(`${format}: what is packed unpacks to the same`, async (t) => {
    const { server, at, context } = await start(t, SAMPLE)
    symlinkSync('level.dat', at('world/link'))
    chmodSync(at('world/zero'), 0o751)
    writeFileSync(Buffer.concat([Buffer.from(at('world/')), Buffer.of(0xff, 0x41)]), 'raw')
    execFileSync('mkfifo', [at('world/fifo')])
    const packed = await pack(server, { kind: 'files.pack', root: '/', files: ['world'], format }, context)
    assert.equal(packed.path, `/world.${format}`)
    await unpack(server, { kind: 'files.unpack', path: packed.path, directory: '/out' }, context)
    execFileSync('rm', [at('world/fifo')])
    execFileSync('diff', ['-r', '--no-dereference', at('world'), at('out/world')])
    assert.equal(statSync(at('out/world/zero')).mode & 0o777, 0o751)
    assert.deepEqual(readdirSync(server.folders.staging), [])
    await server.usage.rescan()
  })

  test(`${format}: the tools that people have read what we write`, async (t) => {
    const { server, at, context } = await start(t, SAMPLE)
    symlinkSync('level.dat', at('world/link'))
    await pack(server, { kind: 'files.pack', root: '/', files: ['world'], format, target: '/a' }, context)
    fillTree(server.folders.files, { 'theirs/': '' })
    if (format === 'zip') execFileSync('unzip', ['-q', at('a'), '-d', at('theirs')], { env: { LC_ALL: 'C.UTF-8' } })
    else
      execFileSync('tar', [
        format === 'tar.zst' ? '--zstd' : format === 'tar' ? '-p' : '-z',
        '-xf',
        at('a'),
        '-C',
        at('theirs'),
      ])
    execFileSync('diff', ['-r', '--no-dereference', at('world'), at('theirs/world')])
  })

  test(`${format}: we read what the tools that people have write`, async (t) => {
    const { server, at, context } = await start(t, SAMPLE)
    const cwd = server.folders.files
    if (format === 'zip') execFileSync('zip', ['-qry', at('a'), 'world'], { cwd })
    else
      execFileSync(
        'tar',
        [format === 'tar.zst' ? '--zstd' : format === 'tar' ? '-p' : '-z', '-cf', at('a'), './world'],
        { cwd },
      )
    const path = existsSync(at('a')) ? '/a' : '/a.zip'
    await unpack(server, { kind: 'files.unpack', path, directory: '/out' }, context)
    execFileSync('diff', ['-r', at('world'), at('out/world')])
  })

  test(`${format}: an archive that is cut short anywhere leaves nothing`, async (t) => {
    const { server, at, context, tree } = await start(t, SAMPLE)
    await pack(server, { kind: 'files.pack', root: '/', files: ['world'], format, target: '/a' }, context)
    const whole = readFileSync(at('a'))
    const before = tree()
    for (const part of [0.1, 0.5, 0.9, 0.97]) {
      writeFileSync(at('a'), whole.subarray(0, Math.floor(whole.length * part)))
      const cut = unpack(server, { kind: 'files.unpack', path: '/a', directory: '/out' }, context)
      await assert.rejects(cut, code('invalid_archive'), `${part}`)
      assert.deepEqual(tree(), before)
      assert.deepEqual(readdirSync(server.folders.staging), [])
    }
  })
}

const EVIL: Record<string, ArchiveEntry[]> = {
  'a name that climbs': [entry('../evil')],
  'a name that climbs from inside': [entry('a/../../evil')],
  'an absolute name': [entry('/tmp/evil')],
  'a drive': [entry('C:/evil')],
  'a name with NUL': [entry('a\0b/c')],
  'a link out': [entry('l', { kind: 'symlink', target: '../../outside' })],
  'an absolute link': [entry('l', { kind: 'symlink', target: '/etc' })],
  'a file through a link': [
    entry('d', { kind: 'directory' }),
    entry('l', { kind: 'symlink', target: 'd' }),
    entry('l/x'),
  ],
  'a file through a file': [entry('f'), entry('f/x')],
  'a name twice': [entry('f'), entry('f')],
  'a file where a directory is': [entry('f/x'), entry('f')],
}

// A NUL ends a name in tar: there it is another, harmless one.
for (const [what, entries] of Object.entries(EVIL))
  for (const format of what === 'a name with NUL' ? (['zip'] as const) : (['zip', 'tar'] as const))
    test(`${format}: ${what} is refused`, async (t) => {
      const { server, at, context, tree } = await start(t)
      const archive = writeArchive(
        format,
        (async function* () {
          yield* entries
        })(),
      )
      writeFileSync(at('a'), Buffer.concat(await Array.fromAsync(archive)))
      const descriptors = openDescriptors()
      const work = unpack(server, { kind: 'files.unpack', path: '/a', directory: '/out' }, context)
      await assert.rejects(work, code('invalid_archive'))
      assert.deepEqual(tree(), ['a'])
      assert.deepEqual(readdirSync(server.folders.staging), [])
      assert.deepEqual(openDescriptors(), descriptors)
    })

test('Unpacking builds the whole tree in staging and then moves it into place; a refused archive leaves nothing behind.', async (t) => {
  const { agent, server, at, context, tree } = await start(t)
  const bomb = writeArchive(
    'zip',
    (async function* () {
      yield entry('zeros', { text: '\0'.repeat(2_000_000) })
      yield entry('b')
    })(),
  )
  writeFileSync(at('a'), Buffer.concat(await Array.fromAsync(bomb)))
  const work = { kind: 'files.unpack', path: '/a', directory: '/out' } as const
  const limits = { ...UNPACK_LIMITS, harmlessBytes: 1000 }
  await assert.rejects(unpack(server, work, context, limits), code('invalid_archive'))
  await assert.rejects(
    unpack(server, work, context, { ...UNPACK_LIMITS, maxBytes: 1_999_999 }),
    code('invalid_archive'),
  )
  await assert.rejects(unpack(server, work, context, { ...UNPACK_LIMITS, maxEntries: 1 }), code('invalid_archive'))
  await agent.setQuota({ serverId, quotaBytes: 1_000_000, maxEntries: null })
  await assert.rejects(unpack(server, work, context), code('quota_exceeded'))
  assert.deepEqual(tree(), ['a'])
  assert.deepEqual(readdirSync(server.folders.staging), [])
  assert.equal((await agent.usage({ serverId })).reservedBytes, 0)
})

test('zip: encryption, lying sizes, wrong checksums, two names and overlaps are refused', async (t) => {
  const { server, at, context, tree } = await start(t)
  const archive = writeArchive(
    'zip',
    (async function* () {
      yield entry('f', { text: 'y'.repeat(5000) })
    })(),
  )
  const good = Buffer.concat(await Array.fromAsync(archive))
  const central = good.lastIndexOf(Buffer.from('PK\x01\x02', 'latin1'))
  const faults: [string, (zip: Buffer) => void][] = [
    ['encrypted', (zip) => zip.writeUInt16LE(0x0809, central + 8)],
    ['larger than said', (zip) => zip.writeUInt32LE(4999, central + 24)],
    ['smaller than said', (zip) => zip.writeUInt32LE(5001, central + 24)],
    ['wrong checksum', (zip) => zip.writeUInt32LE(1, central + 16)],
    ['unknown method', (zip) => zip.writeUInt16LE(12, central + 10)],
    ['two names', (zip) => zip.write('g', 30)],
    ['data outside', (zip) => zip.writeUInt32LE(good.length, central + 20)],
    ['header outside', (zip) => zip.writeUInt32LE(good.length, central + 42)],
  ]
  for (const [what, spoil] of faults) {
    const zip = Buffer.from(good)
    spoil(zip)
    writeFileSync(at('a'), zip)
    const work = unpack(server, { kind: 'files.unpack', path: '/a', directory: '/out' }, context)
    await assert.rejects(work, code('invalid_archive'), what)
  }
  assert.deepEqual(tree(), ['a'])
})

test('tar: bad checksums and things that are not files are refused; so is what is no archive at all', async (t) => {
  const { server, at, context } = await start(t)
  const rejected = async (bytes: Uint8Array) => {
    writeFileSync(at('a'), bytes)
    const work = unpack(server, { kind: 'files.unpack', path: '/a', directory: '/out' }, context)
    await assert.rejects(work, code('invalid_archive'))
  }
  execFileSync('mkfifo', [at('fifo')])
  execFileSync('tar', ['-cf', at('t'), 'fifo'], { cwd: server.folders.files })
  await rejected(readFileSync(at('t')))
  fillTree(server.folders.files, { one: '1' })
  execFileSync('ln', [at('one'), at('two')])
  execFileSync('tar', ['-cf', at('t'), 'one', 'two'], { cwd: server.folders.files })
  const linked = readFileSync(at('t'))
  await rejected(linked)
  linked[0] = 1
  await rejected(linked)
  await rejected(Buffer.from('hello'))
  await rejected(gzipSync('not a tar'))
  await rejected(gzipSync(Buffer.alloc(0)))
  await rejected(Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), deflateRawSync('x')]))
  await rejected(Buffer.alloc(0))
})

test('unpacking into what is there refuses, or replaces into the trash', async (t) => {
  const { agent, server, at, context } = await start(t, {
    'w/a': 'new',
    'w/d/b': 'new',
    'out/w/a': 'old',
    'out/w/d/c': 'kept',
  })
  await pack(server, { kind: 'files.pack', root: '/', files: ['w'], format: 'tar', target: '/t' }, context)
  const work = { kind: 'files.unpack', path: '/t', directory: '/out' } as const
  await assert.rejects(unpack(server, work, context), code('already_exists'))
  assert.equal(readFileSync(at('out/w/a'), 'utf8'), 'old')
  assert.ok(!existsSync(at('out/w/d/b')))
  await unpack(server, { ...work, overwrite: true }, context)
  assert.equal(readFileSync(at('out/w/a'), 'utf8'), 'new')
  assert.equal(readFileSync(at('out/w/d/c'), 'utf8'), 'kept')
  assert.deepEqual(
    (await agent.listTrash({ serverId })).items.map(({ path }) => path),
    ['/out/w/a'],
  )
})

test('begun again after a crash, packing answers with what it has packed already', async (t) => {
  const { agent, server, context, at } = await start(t, SAMPLE)
  const work: PackWork = { kind: 'files.pack', root: '/', files: ['world'], format: 'tar', target: '/t' }
  const first = await pack(server, work, context)
  assert.deepEqual(await pack(server, work, context), first)
  await assert.rejects(pack(server, work, { ...context, taskId: 'job_2' }), code('already_exists'))
  // Another file of the same name is not its own.
  await agent.remove({ serverId, requestId: 'req_1', root: '/', files: ['t'] })
  writeFileSync(at('t'), 'mine')
  await assert.rejects(pack(server, work, context), code('already_exists'))
  await agent.remove({ serverId, requestId: 'req_2', root: '/', files: ['t'] })
  assert.equal((await pack(server, work, context)).sizeBytes, first.sizeBytes)
  server.placements.expire(Date.now() + 1000)
  assert.deepEqual(readdirSync(join(server.folders.root, 'placed')), [])
})

test('cancelled work leaves nothing', async (t) => {
  const { server, at, tree, context, abort } = await start(t, SAMPLE)
  await pack(server, { kind: 'files.pack', root: '/', files: ['world'], format: 'tar', target: '/t' }, context)
  const before = tree()
  const report = () => abort.abort()
  await assert.rejects(unpack(server, { kind: 'files.unpack', path: '/t', directory: '/out' }, { ...context, report }))
  const packing = { kind: 'files.pack' as const, root: '/', files: ['world'], format: 'zip' as const }
  await assert.rejects(pack(server, packing, { ...context, report }))
  assert.deepEqual(tree(), before)
  assert.deepEqual(readdirSync(server.folders.staging), [])
  assert.ok(existsSync(at('t')))
})
