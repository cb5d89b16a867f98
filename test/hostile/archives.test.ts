// Archives of a stranger: zips that lie in the middle, tars of headers without end, directories of a quarter of a gigabyte.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { closeSync, openSync, readdirSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { archiveOf, entry } from '../../src/agent/files/archives/archives.testing.ts'
import { paxRecord, TAR_END, tarMember, zipEnd } from '../../src/agent/files/archives/spoiled.testing.ts'
import { killLeftovers } from '../support/process.ts'
import { attack } from './support/attack.ts'
import { openScene, type Tenant } from './support/scene.ts'
import { sized } from './support/size.ts'

after(killLeftovers)

const MIB = 1024 * 1024

async function unpack({ call, serverId, ended }: Tenant, path: string, signal: AbortSignal) {
  const asked = await call('POST', `/files/${serverId}/unpack`, { body: { path, directory: '/out' }, signal })
  assert.equal(asked.status, 202, asked.text)
  return await ended(asked.body.id)
}

async function assertRefused(attacker: Tenant, path: string, signal: AbortSignal): Promise<void> {
  const job = await unpack(attacker, path, signal)
  assert.equal(job.status, 'failed')
  assert.equal(job.error.code, 'invalid_archive', JSON.stringify(job.error))
}

test('zips that are refused in mid-read close no descriptor of the tenant next door', async (t) => {
  const scene = await openScene(t)
  const lying = await archiveOf('zip', [entry('f', { text: randomBytes(3 * MIB) })])
  lying.writeUInt32LE(1000, lying.lastIndexOf(Buffer.from('PK\x01\x02', 'latin1')) + 24)
  await attack(scene, async (attacker, signal) => {
    assert.equal((await attacker.put('/lying.zip', lying)).status, 201)
    for (let round = 0; round < sized(12) && !signal.aborted; round++)
      await assertRefused(attacker, '/lying.zip', signal)
    assert.deepEqual(readdirSync(attacker.folder), ['lying.zip'])
  })
})

test('pax headers without end are not kept', async (t) => {
  const scene = await openScene(t)
  const filler = 'x'.repeat(MIB - 64)
  // Each a stream of its own, which gzip takes for one.
  const headers = Array.from({ length: sized(700, 3000) }, (_, index) =>
    gzipSync(tarMember({ type: 'x' }, paxRecord(`k${index}`, filler)), { level: 1 }),
  )
  const archive = Buffer.concat([...headers, gzipSync(Buffer.concat([tarMember({ name: 'f', type: '0' }), TAR_END]))])
  await attack(scene, async (attacker, signal) => {
    assert.equal((await attacker.put('/headers.tar.gz', archive)).status, 201)
    await assertRefused(attacker, '/headers.tar.gz', signal)
    assert.deepEqual(readdirSync(attacker.folder), ['headers.tar.gz'])
  })
})

test('the directory of a zip stalls nobody, however large it is', async (t) => {
  const scene = await openScene(t)
  writeLargeDirectory(join(scene.attacker.folder, 'many.zip'))
  await attack(scene, (attacker, signal) => assertRefused(attacker, '/many.zip', signal))
})

/** 255 MB of records without names: five and a half million. The count at the end is a lie, as far as 16 bits go. */
function writeLargeDirectory(path: string): void {
  const record = Buffer.alloc(46)
  record.writeUInt32LE(0x02014b50, 0)
  const piece = Buffer.alloc(46 * 20_000, record)
  const file = openSync(path, 'w')
  const head = Buffer.alloc(30)
  head.writeUInt32LE(0x04034b50, 0)
  writeSync(file, head)
  const pieces = Math.floor((255 * MIB) / piece.length)
  for (let written = 0; written < pieces; written++) writeSync(file, piece)
  writeSync(file, zipEnd(1, pieces * piece.length, head.length))
  closeSync(file)
}
