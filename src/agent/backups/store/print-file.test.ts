import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { layout } from '../../layout.ts'
import { startAgent, temporaryFolder } from '../backups.testing.ts'
import { createPrintCache, type NamedPrints, PRINTED_FROM_BYTES } from '../blocks/block-prints.ts'
import { BLOCK_BYTES } from '../format/format.ts'
import { openPrintFile } from './print-file.ts'

const some = (count: number): NamedPrints[] =>
  Array.from({ length: count }, (_, index) => [
    `srv_a/wörld/\u{10fe80}${index}`,
    { prints: new Uint8Array(randomBytes(16 * index)), ids: new Uint8Array(randomBytes(32 * index)) },
  ])

test('what was written is read, with the key that it was made with', async (t) => {
  const path = join(temporaryFolder(t), 'prints')
  const first = openPrintFile(path)
  assert.deepEqual(await Array.fromAsync(first.read()), [])
  const all = some(5)
  await first.write(all)
  assert.equal(statSync(path).mode & 0o777, 0o600)
  const second = openPrintFile(path)
  assert.deepEqual(second.key, first.key)
  const found = await Array.fromAsync(second.read())
  assert.deepEqual(found, all)
  // As in memory: a slice of a Buffer would be a view.
  for (const [, { prints, ids }] of found) assert.ok(!Buffer.isBuffer(prints) && !Buffer.isBuffer(ids))
  second.drop()
  assert.ok(!existsSync(path))
  assert.notDeepEqual(openPrintFile(path).key, first.key)
})

test('of a file that is damaged anywhere, nothing is read that was not written', async (t) => {
  const path = join(temporaryFolder(t), 'prints')
  const all = some(4)
  await openPrintFile(path).write(all)
  const whole = readFileSync(path)
  const damage = fc.oneof(
    fc.record({ at: fc.nat(whole.length - 1), xor: fc.integer({ min: 1, max: 255 }) }),
    fc.record({ length: fc.nat(whole.length - 1) }),
    fc.record({ zerosFrom: fc.nat(whole.length - 17) }),
  )
  await fc.assert(
    fc.asyncProperty(damage, async (how) => {
      const bytes = Buffer.from(whole)
      if ('at' in how) bytes[how.at] = (bytes[how.at] ?? 0) ^ how.xor
      if ('zerosFrom' in how) bytes.fill(0, how.zerosFrom)
      writeFileSync(path, 'length' in how ? bytes.subarray(0, how.length) : bytes)
      const found = await Array.fromAsync(openPrintFile(path).read())
      assert.ok(found.length < all.length)
      assert.deepEqual(found, all.slice(0, found.length))
    }),
    { numRuns: 200 },
  )
})

test('a file that cannot be written or read costs nothing but its prints', async (t) => {
  const folder = temporaryFolder(t)
  const nowhere = openPrintFile(join(folder, 'missing/prints'))
  await nowhere.write(some(2))
  assert.deepEqual(await Array.fromAsync(nowhere.read()), [])
  mkdirSync(join(folder, 'prints/inside'), { recursive: true })
  const taken = openPrintFile(join(folder, 'prints'))
  await taken.write(some(2))
  assert.deepEqual(await Array.fromAsync(taken.read()), [])
  assert.ok(!existsSync(join(folder, 'prints.new')))
  mkdirSync(join(folder, 'other.new/inside'), { recursive: true })
  const blocked = openPrintFile(join(folder, 'other'))
  await blocked.write(some(2))
  assert.deepEqual(await Array.fromAsync(blocked.read()), [])
})

test('what is no regular file in its place is neither followed nor waited for', async (t) => {
  const folder = temporaryFolder(t)
  const [path, victim] = [join(folder, 'prints'), join(folder, 'victim')]
  writeFileSync(victim, 'mine')
  for (const name of [path, `${path}.new`]) execFileSync('mkfifo', [name])
  const file = openPrintFile(path)
  assert.deepEqual(await Array.fromAsync(file.read()), [])
  symlinkSync(victim, `${path}.new`)
  await file.write(some(2))
  assert.equal(readFileSync(victim, 'utf8'), 'mine')
  assert.ok(lstatSync(path).isFile())
})

test('what a process that was killed has begun to write goes with the next start', async (t) => {
  const path = join(temporaryFolder(t), 'prints')
  await openPrintFile(path).write(some(2))
  writeFileSync(`${path}.new`, 'gamekeeper')
  assert.equal((await Array.fromAsync(openPrintFile(path).read())).length, 2)
  assert.ok(!existsSync(`${path}.new`))
})

test('of a server that is gone nothing is kept, whatever was under way', async (t) => {
  const path = join(temporaryFolder(t), 'prints')
  const prints = { prints: new Uint8Array(16), ids: new Uint8Array(32) }
  const kept = async () => (await Array.fromAsync(openPrintFile(path).read())).map(([name]) => name)
  const cache = createPrintCache(10_000, openPrintFile(path))
  for (const serverId of ['srv_a', 'srv_b']) cache.set(serverId, '/region', prints)
  await Promise.all([cache.keep(), cache.forget('srv_a')])
  assert.ok(!existsSync(path))
  await cache.keep()
  assert.deepEqual(await kept(), ['srv_b/region'])

  // It had to give way in memory, and is in the file.
  for (let index = 0; index < 1000; index++) cache.set('srv_c', `/${index}`, prints)
  assert.equal(cache.get('srv_b', '/region'), undefined)
  await cache.forget('srv_b')
  assert.ok(!existsSync(path))
})

test('the prints of large files outlive their process, and not their server', async (t) => {
  const folder = temporaryFolder(t)
  const content = randomBytes(PRINTED_FROM_BYTES + 3 * BLOCK_BYTES)
  const restarted = async (agent?: Awaited<ReturnType<typeof startAgent>>) => {
    await agent?.stop()
    const next = await startAgent(folder)
    t.after(() => next.stop())
    const { prints } = await next.backups.repository()
    return { agent: next, prints }
  }
  const one = await restarted()
  for (const serverId of ['srv_a', 'srv_b']) {
    writeFileSync(join(one.agent.filesOf(serverId), 'region'), content)
    await one.agent.create(serverId)
  }
  // Whether the processor makes prints of the file or not.
  const made = { prints: new Uint8Array(randomBytes(16)), ids: new Uint8Array(randomBytes(32)) }
  for (const serverId of ['srv_a', 'srv_b']) one.prints.set(serverId, '/known', made)

  const two = await restarted(one.agent)
  await two.prints.load()
  assert.deepEqual(two.prints.get('srv_a', '/known'), made)
  const changed = Buffer.from(content)
  changed.set(randomBytes(100), 5 * BLOCK_BYTES)
  writeFileSync(join(two.agent.filesOf('srv_a'), 'region'), changed)
  const { backupId, storedBytes } = await two.agent.create('srv_a')
  assert.ok(storedBytes < 1.1 * BLOCK_BYTES, `${storedBytes} stored`)
  two.agent.filesOf('srv_c')
  await two.agent.restore('srv_c', backupId, { sourceServerId: 'srv_a' })
  assert.ok(readFileSync(join(two.agent.filesOf('srv_c'), 'region')).equals(changed))
  await two.agent.backups.forget('srv_a')
  assert.ok(!existsSync(join(folder, 'prints')))

  const three = await restarted(two.agent)
  await three.prints.load()
  assert.equal(three.prints.get('srv_a', '/known'), undefined)
  assert.deepEqual(three.prints.get('srv_b', '/known'), made)
})

test('prints of a store that is gone name nothing in the one after it', async (t) => {
  const folder = temporaryFolder(t)
  const content = randomBytes(PRINTED_FROM_BYTES + 3 * BLOCK_BYTES)
  const one = await startAgent(folder)
  t.after(() => one.stop())
  writeFileSync(join(one.filesOf('srv_a'), 'region'), content)
  await one.create('srv_a')
  await one.stop()
  rmSync(layout(folder).backups, { recursive: true })

  const two = await startAgent(folder)
  t.after(() => two.stop())
  const { backupId } = await two.create('srv_a')
  two.filesOf('srv_b')
  await two.restore('srv_b', backupId, { sourceServerId: 'srv_a' })
  assert.ok(readFileSync(join(two.filesOf('srv_b'), 'region')).equals(content))
})
