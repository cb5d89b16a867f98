// What a restore and a verify make of a store in which whole packs are not where they belong, or were changed on purpose.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { snapshot, startAgent, temporaryFolder, testAgent } from '../backups.testing.ts'
import { digest, PACK_MAGIC } from '../format/format.ts'
import { createGmac, GMAC_KEY_BYTES } from '../format/gmac.ts'
import { createTableBuilder, decodeTable } from '../format/pack-table.ts'
import { CODEC_SPANS } from '../format/seal.ts'
import { createSpanBuilder, encodeSpans } from '../format/spans.ts'
import { leaveAll, mirror, openBucket } from '../offsite.testing.ts'

const MIB = 1024 * 1024
const TRAILER_BYTES = 44

const packsIn = (dir: string) =>
  readdirSync(join(dir, 'packs'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

for (const where of ['disk', 'copy'] as const)
  it(`two packs of one shape that have changed places on the ${where} are never restored, and both are named`, async (t) => {
    const bucket = openBucket(temporaryFolder(t))
    const agent = await testAgent(t, where === 'copy' ? { offsite: bucket.open } : {})
    const root = agent.filesOf('srv_a')
    let backupId = ''
    for (const name of ['one', 'two']) {
      writeFileSync(join(root, name), randomBytes(3 * MIB))
      backupId = (await agent.create('srv_a')).backupId
    }
    if (where === 'copy') {
      mirror(agent, bucket)
      await leaveAll(agent)
    }
    const packs = packsIn(where === 'copy' ? bucket.dir : agent.storeDir)
    const [one = '', two = ''] = packs
    renameSync(one, `${one}.aside`)
    renameSync(two, one)
    renameSync(`${one}.aside`, two)
    const target = agent.filesOf('srv_b')
    await assert.rejects(agent.restore('srv_b', backupId, { sourceServerId: 'srv_a' }), { code: 'backup_damaged' })
    assert.deepEqual(snapshot(target), {})
    const { damage } = await agent.run({ kind: 'backups.verify', backupId }, 'srv_a')
    for (const pack of packs) assert.ok(damage.some(({ blob }) => pack.endsWith(blob)))
  })

it('whoever has no key cannot make spans that an encrypted store would trust', async (t) => {
  const key = randomBytes(32)
  const dataDir = temporaryFolder(t)
  const before = await startAgent(dataDir, { key })
  writeFileSync(join(before.filesOf('srv_a'), 'large'), randomBytes(3 * MIB))
  const { backupId } = await before.create('srv_a')
  await before.stop()
  const [path = ''] = packsIn(before.storeDir)
  exchangeFrames(path)
  rmSync(join(before.storeDir, 'index'), { recursive: true })
  const agent = await startAgent(dataDir, { key })
  t.after(() => agent.stop())
  const target = agent.filesOf('srv_b')
  await assert.rejects(agent.restore('srv_b', backupId, { sourceServerId: 'srv_a' }), { code: 'backup_damaged' })
  assert.deepEqual(snapshot(target), {})
})

/** Two frames change places, and the pack gets a list of spans and a table that agree with that. Needs no key. */
function exchangeFrames(path: string): void {
  const pack = readFileSync(path)
  const end = pack.length - TRAILER_BYTES
  const tableAt = end - pack.readUInt32LE(end)
  const frames = decodeTable(pack.subarray(tableAt, end))
  const content = Buffer.from(pack.subarray(0, tableAt))
  const [one, two] = frames.filter(({ blocks }) => blocks.length > 0).slice(3, 5)
  assert.ok(one && two && one.storedLength === two.storedLength)
  pack.copy(content, one.offset, two.offset, two.offset + two.storedLength)
  pack.copy(content, two.offset, one.offset, one.offset + one.storedLength)
  const spanKey = randomBytes(GMAC_KEY_BYTES)
  const spans = createSpanBuilder(createGmac(spanKey))
  const table = createTableBuilder()
  for (const frame of frames) {
    spans.addFrame(content, frame.offset + frame.storedLength)
    table.addFrame(frame, frame.blocks.length)
    for (const { id, inner, length } of frame.blocks) table.addBlock(id, 0, inner, length)
  }
  const list = encodeSpans(path.slice(path.lastIndexOf('/') + 1), spanKey, [spans.take(content)])
  const row = { offset: content.length, storedLength: list.length, rawLength: list.length, codec: CODEC_SPANS, crc: 0 }
  table.addFrame(row, 0)
  const made = table.take()
  const length = Buffer.alloc(4)
  length.writeUInt32LE(made.length)
  writeFileSync(path, Buffer.concat([content, list, made, length, digest(made), Buffer.from(PACK_MAGIC)]))
}
