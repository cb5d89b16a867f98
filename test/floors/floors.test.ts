// The least programs do what they are compared for: nothing is a floor that leaves out what has to be done.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, suite, test } from 'node:test'
import { run } from '../../bench/floors.ts'
import { changeManyFiles, makeManyFiles } from '../../bench/many-files.ts'
import type { Changed } from '../../bench/support/floors/floor.ts'
import { startNodeProgram } from '../../bench/support/floors/node-floor.ts'
import { buildProgram, type Hash } from '../../bench/support/floors/program.ts'
import { startLeastService } from '../../bench/support/floors/service-floor.ts'
import { verdictOn } from '../../bench/support/floors/verdicts.ts'
import { needs } from '../support/needs.ts'

const SECTOR = 4096
const BLOCK = 65_536

suite('floors', needs('cc'), () => {
  const base = mkdtempSync(join(tmpdir(), 'gamekeeper-floors-test-'))
  after(() => rmSync(base, { recursive: true, force: true }))
  const program = buildProgram(base)
  assert.ok(program)
  const folder = (name: string) => {
    mkdirSync(join(base, name))
    return join(base, name)
  }

  test('blocks are named as Node names them, by every hash', () => {
    const hashes = new Set<Hash>(['sha-256', 'blake2b-256', ...program.hashes])
    for (const bytes of [0, 1, BLOCK - 1, BLOCK, 5 * BLOCK + 77]) {
      const content = randomBytes(bytes)
      writeFileSync(join(base, 'content'), content)
      const blocks = Array.from({ length: Math.ceil(bytes / BLOCK) }, (_, index) =>
        content.subarray(index * BLOCK, (index + 1) * BLOCK),
      )
      for (const hash of hashes) {
        const algorithm = hash === 'blake2b-256' ? 'blake2b512' : 'sha256'
        const names = blocks.map((block) => createHash(algorithm).update(block).digest('hex').slice(0, 64))
        assert.deepEqual(program.namesOf(hash, join(base, 'content')), names)
      }
    }
  })

  const tree = folder('tree')
  mkdirSync(join(tree, 'world/region'), { recursive: true })
  // No byte of it is a zero but those below: one at the end of a sector would not be stored.
  const region = Buffer.from(randomBytes(40 * SECTOR).map((byte) => byte || 1))
  // The zeros at the end of the sixth sector need not be stored.
  region.fill(0, 6 * SECTOR - 1000, 6 * SECTOR)
  const contents: Record<string, Buffer> = {
    'world/region/r.0.0.mca': region,
    'world/level.dat': randomBytes(700),
    'server.properties': Buffer.from('motd=Castle\n'),
    empty: Buffer.alloc(0),
    'large.bin': randomBytes(3_000_001),
  }
  for (const [path, content] of Object.entries(contents)) {
    writeFileSync(join(tree, path), content)
    utimesSync(join(tree, path), 1_700_000_000, 1_700_000_000.5)
  }

  test('a walk looks at every entry', () => {
    assert.equal(program.run<{ entries: number }>('sha-256', 'walk', tree).entries, 7)
  })

  test('a first backup writes as many bytes as it is told', () => {
    const store = folder('store')
    const { bytes } = program.run<{ bytes: number }>('sha-256', 'first', tree, store, 2_000_000)
    assert.equal(
      bytes,
      Object.values(contents).reduce((sum, content) => sum + content.length, 0),
    )
    const written = readdirSync(store).reduce((sum, name) => sum + statSync(join(store, name)).size, 0)
    assert.ok(Math.abs(written - 2_000_000) < 8 * SECTOR, `${written} bytes`)
  })

  function assertRestored(target: string): void {
    for (const [path, content] of Object.entries(contents)) {
      assert.ok(readFileSync(join(target, path)).equals(content), path)
      assert.equal(statSync(join(target, path)).mtimeMs, 1_700_000_000_500)
    }
    assert.equal(readdirSync(target, { recursive: true }).length, 7)
  }

  test('what is restored is what was packed', () => {
    const [pack, list, target] = [join(base, 'pack'), join(base, 'list'), folder('restored')]
    program.run('sha-256', 'pack', tree, pack, list)
    program.run('sha-256', 'restore', pack, list, target)
    assertRestored(target)
  })

  test('what is restored by the least program in Node is what was packed', async () => {
    const node = startNodeProgram()
    after(() => node.stop())
    const [pack, target] = [join(base, 'node-pack'), folder('node-restored')]
    await node.ask({ step: 'pack', tree, pack })
    await node.ask({ step: 'restore', pack, target })
    assertRestored(target)
  })

  test('what our format asks of every byte is all that a first backup would write', async () => {
    const node = startNodeProgram()
    after(() => node.stop())
    const store = folder('format')
    const { bytes } = await node.ask({ step: 'format', tree, store })
    // A thousand zeros in a block are too few to leave out, and nothing else can be saved of what is random.
    const all = Object.values(contents).reduce((sum, content) => sum + content.length, 0)
    assert.equal(bytes, all)
    const written = readdirSync(store).reduce((sum, name) => sum + statSync(join(store, name)).size, 0)
    assert.ok(bytes - written < 8 * SECTOR && written <= bytes, `${written} of ${bytes} bytes`)
  })

  test('of what changed in place, the sectors that differ are stored, and nothing else', () => {
    const prints = join(base, 'prints')
    const { newestNs } = program.run<{ newestNs: string }>('sha-256', 'prints', tree, prints)
    assert.equal(newestNs, '1700000000500000000')
    const path = join(tree, 'world/region/r.0.0.mca')
    region[5 * SECTOR] = (region[5 * SECTOR] ?? 0) ^ 1
    region[39 * SECTOR] = (region[39 * SECTOR] ?? 0) ^ 1
    writeFileSync(path, region)
    const since = BigInt(newestNs) + 1n
    const { files, fileBytes, sectors, stored } = program.run<Changed>('sha-256', 'compare', tree, prints, since)
    assert.deepEqual({ files, fileBytes, sectors }, { files: 1, fileBytes: region.length, sectors: 2 })
    // The zeros of the sixth sector are in its block whatever the size of blocks is; the last block is not a whole one.
    const inBlocksOf = (kib: number) => (2 * (kib / 4) - (kib === 64 ? 8 : 0)) * SECTOR - 1000
    assert.deepEqual(stored, [4, 8, 16, 32, 64].map(inBlocksOf))
    const { added } = program.run<{ added: number }>('sha-256', 'changed', tree, prints, since, folder('changed'))
    assert.equal(added, stored[0])
  })

  test('the least program in Node reads all of a tree, and of what changed the blocks that did', async () => {
    const node = startNodeProgram()
    after(() => node.stop())
    const first = folder('node-first')
    const { bytes } = await node.ask({ step: 'first', tree, store: first, share: 1 })
    assert.equal(
      bytes,
      Object.values(contents).reduce((sum, content) => sum + content.length, 0),
    )
    const written = readdirSync(first).reduce((sum, name) => sum + statSync(join(first, name)).size, 0)
    assert.ok(bytes - written < 8 * SECTOR, `${written} of ${bytes} bytes`)
    const prints = join(base, 'node-prints')
    await node.ask({ step: 'prints', tree, prints })
    const content = contents['large.bin'] as Buffer
    content[BLOCK * 7 + 5] = (content[BLOCK * 7 + 5] ?? 0) ^ 1
    writeFileSync(join(tree, 'large.bin'), content)
    const changed = await node.ask({ step: 'changed', tree, prints, store: folder('node-changed'), share: 1 })
    assert.equal(changed.bytes, BLOCK)
  })

  test('the least service in Node looks at every file, and has written when it answers', async () => {
    const store = folder('service')
    const service = await startLeastService(tree, store)
    after(() => service.stop())
    const count = (table: string) => {
      using database = new DatabaseSync(join(store, 'least.sqlite'), { readOnly: true })
      return database.prepare(`select count(*) as count from ${table}`).get()?.count
    }
    const manifests = () => readdirSync(store).filter((name) => !name.startsWith('least.sqlite'))
    for (const made of [1, 2]) {
      assert.deepEqual(await service.backUp(), { files: Object.keys(contents).length })
      assert.deepEqual([count('backups'), count('activity'), manifests().length], [made, made, made])
    }
    await assert.rejects(service.backUp('another'), /401/)
    assert.equal(manifests().length, 2)
  })

  test('the benchmark runs, in its short form', async () => {
    const small = {
      what: '300 files',
      make: (root: string) => makeManyFiles(root, 300),
      change: (root: string, seed: number) => changeManyFiles(root, 300, 5, seed),
      changeMuch: (root: string) => changeManyFiles(root, 300, 3, 900),
      bars: { first: 1, unchanged: 1, restore: 1 },
      settleMs: 0,
    }
    // Without a peer there is nothing to judge; that every step was measured is what is tested.
    assert.equal(await run({ trees: { small }, rounds: 1, kinds: ['cold'], peers: [] }), true)
  })
})

test('a bar that is not held could be had, or could not, by the least program and by its bound', () => {
  const at = { least: 8, bound: 10, sign: '>=' as const }
  assert.equal(verdictOn({ ours: 6, bar: 6, ...at }), 'holds')
  assert.equal(verdictOn({ ours: 5, bar: 6, ...at }), 'could be had, and is not')
  assert.equal(verdictOn({ ours: 5, bar: 9, ...at }), 'beyond the least program')
  assert.equal(verdictOn({ ours: 5, bar: 11, ...at }), 'cannot be had')
  assert.equal(verdictOn({ ours: 5, bar: 7, leastInNode: 6.5, ...at }), 'beyond the least program in Node')
  assert.equal(verdictOn({ ours: 5, bar: 6, leastInNode: 6.5, ...at }), 'could be had, and is not')
  assert.equal(
    verdictOn({ ours: 5, bar: 6, leastInNode: 6.5, leastService: 5.9, ...at }),
    'beyond the least service in Node',
  )
  assert.equal(verdictOn({ ours: 5, bar: 6, leastInNode: 6.5, ourFormat: 5.9, ...at }), 'beyond what our format asks')
  assert.equal(verdictOn({ ours: 0.2, least: 0.13, bound: 0.13, bar: 0.15, sign: '<=' }), 'could be had, and is not')
  assert.equal(verdictOn({ ours: 0.2, least: 0.16, bound: 0.16, bar: 0.15, sign: '<=' }), 'cannot be had')
})
