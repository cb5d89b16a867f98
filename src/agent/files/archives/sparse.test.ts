// A file of 15 TB that is one hole takes nothing of a quota: whatever reads it ends all the same.
import assert from 'node:assert/strict'
import { lstatSync, readdirSync, renameSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { BY_THE_SYSTEM } from '../changes/changes.ts'
import { copy } from '../copy.ts'
import { request } from '../server.testing.ts'
import { openDescriptors, untilDescriptors } from '../trees.testing.ts'
import { serverId, start } from './archives.testing.ts'
import { writeArchive } from './formats.ts'
import { pack, treeEntries } from './pack.ts'

const HUGE_BYTES = 15 * 1024 ** 4
const TOO_SPARSE = { code: 'too_large', message: /mostly holes/ }
const FORMATS = ['zip', 'tar', 'tar.gz', 'tar.zst'] as const

async function startWithHole(t: Parameters<typeof start>[0]) {
  const started = await start(t, { 'w/a': 'small', 'w/hole': '' })
  truncateSync(started.at('w/hole'), HUGE_BYTES)
  return started
}

for (const format of FORMATS) {
  test(`${format}: packing a file of 15 TB that is one hole is refused before anything is written`, async (t) => {
    const { agent, server, tree, staged, context } = await startWithHole(t)
    for (const files of [['w'], ['w/hole']]) {
      const work = pack(server, { kind: 'files.pack', root: '/', files, format }, context)
      await assert.rejects(work, TOO_SPARSE)
    }
    assert.deepEqual(tree(), ['w', 'w/a', 'w/hole'])
    assert.deepEqual(staged(), [])
    assert.equal((await agent.usage({ serverId })).reservedBytes, 0)
  })

  test(`${format}: an archive that is sent ends where a file of 15 TB that is one hole begins`, async (t) => {
    const { server } = await startWithHole(t)
    const before = openDescriptors()
    const sending = async () => {
      let sentBytes = 0
      for await (const chunk of writeArchive(format, treeEntries(server.files, [], [['w']]))) {
        sentBytes += chunk.length
        assert.ok(sentBytes < 1024 ** 2)
      }
    }
    await assert.rejects(sending(), TOO_SPARSE)
    await untilDescriptors(before)
  })
}

test('a copy of a file of 15 TB that is one hole is a hole too, and is made at once', async (t) => {
  const { agent, server, at } = await startWithHole(t)
  writeFileSync(at('w/hole'), 'first', { flag: 'r+' })
  for (const location of ['/w/hole', '/w'])
    await copy(server, location, { kind: 'file.copied', requestId: null, origin: BY_THE_SYSTEM })
  for (const made of ['w/hole copy', 'w copy/hole']) {
    const { size, blocks } = lstatSync(at(made))
    assert.equal(size, HUGE_BYTES)
    assert.ok(blocks * 512 < 1024 ** 2, `${blocks} blocks`)
  }
  assert.ok((await agent.usage({ serverId })).usedBytes < 1024 ** 2)
})

test('a copy for which there is no cp is refused, and leaves nothing', async (t) => {
  const { agent, server, at, tree, staged } = await startWithHole(t)
  // cp cannot be told a name that is not UTF-8.
  renameSync(at('w/hole'), Buffer.concat([Buffer.from(at('w/')), Buffer.from([0xff])]))
  const before = tree()
  const copying = copy(server, '/w', { kind: 'file.copied', requestId: null, origin: BY_THE_SYSTEM })
  await assert.rejects(copying, TOO_SPARSE)
  assert.deepEqual(tree(), before)
  assert.deepEqual(staged(), [])
  assert.equal((await agent.usage({ serverId })).reservedBytes, 0)
})

/** What the disk has below the folder. */
const occupiedBytes = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .map((found) => lstatSync(join(found.parentPath, found.name)).blocks * 512)
    .reduce((sum, bytes) => sum + bytes, 0)

const QUOTA_BYTES = 1_000_000

test('copies of sparse files stay sparse, whatever their size, and within the quota', async (t) => {
  const { agent, server, at } = await start(t, { 'w/data': 'data', 'w/hole': '', 'w/less': '' })
  truncateSync(at('w/hole'), 31 * 1024 ** 2)
  truncateSync(at('w/less'), 2 * 1024 ** 2)
  server.setQuota({ bytes: QUOTA_BYTES, entries: null })
  for (const location of ['/w/hole', '/w/hole', '/w']) await agent.copy(request({ location }))
  const { usedBytes } = await agent.usage({ serverId })
  assert.ok(occupiedBytes(at('')) <= usedBytes && usedBytes < 100_000, `${usedBytes} of ${occupiedBytes(at(''))}`)
  assert.equal(lstatSync(at('w copy/hole')).size, 31 * 1024 ** 2)
})

test('holes that a copy writes out count before they are written', async (t) => {
  const { agent, server, at, tree, staged } = await start(t, { 'w/': '' })
  for (let index = 0; index < 8; index++) {
    writeFileSync(at(`w/${index}`), '')
    truncateSync(at(`w/${index}`), 250_000)
  }
  server.setQuota({ bytes: QUOTA_BYTES, entries: null })
  const before = tree()
  await assert.rejects(agent.copy(request({ location: '/w' })), { code: 'quota_exceeded' })
  assert.deepEqual(tree(), before)
  assert.deepEqual(staged(), [])
  const copies = await Promise.allSettled(
    Array.from({ length: 8 }, (_, index) => agent.copy(request({ location: `/w/${index}` }))),
  )
  assert.equal(copies.filter(({ status }) => status === 'fulfilled').length, 3)
  const { usedBytes, reservedBytes } = await agent.usage({ serverId })
  assert.equal(reservedBytes, 0)
  assert.ok(usedBytes <= QUOTA_BYTES && usedBytes === occupiedBytes(at('')), `${usedBytes}`)
})

test('where there is no cp, a large file with holes is copied only if all of it fits the quota', async (t) => {
  const { agent, server, at, tree } = await start(t, { 'w/hole': '' })
  truncateSync(at('w/hole'), 40 * 1024 ** 2)
  // cp cannot be told a name that is not UTF-8.
  renameSync(at('w/hole'), Buffer.concat([Buffer.from(at('w/')), Buffer.from([0xff])]))
  server.setQuota({ bytes: QUOTA_BYTES, entries: null })
  const before = tree()
  await assert.rejects(agent.copy(request({ location: '/w' })), { code: 'quota_exceeded' })
  assert.deepEqual(tree(), before)
})
