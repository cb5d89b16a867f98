import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { type Descriptor, openDescriptor } from '../../../kit/files/descriptor.ts'
import type { CameThere } from './addresses.testing.ts'
import { addressHere, addressIn, descriptorPath, hasDescriptorPaths, isOfDescriptor } from './addresses.ts'
import { OPEN_DIRECTORY } from './directory.ts'

const options = hasDescriptorPaths ? {} : { skip: 'there is no /proc here' }

function openFolder(t: { after(work: () => void): void }): Descriptor {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-addresses-'))
  writeFileSync(join(folder, 'motd.txt'), 'Castle')
  const opened = openDescriptor(folder, OPEN_DIRECTORY)
  t.after(() => {
    opened[Symbol.dispose]()
    rmSync(folder, { recursive: true })
  })
  return opened
}

test('a descriptor is named by the number of the thread that names it', options, (t) => {
  const { fd } = openFolder(t)
  const address = descriptorPath(fd)
  assert.equal(address, `/proc/${readlinkSync('/proc/self')}/fd/${fd}`)
  assert.ok(isOfDescriptor(address))
  assert.equal(addressHere(address), address)
  assert.equal(readFileSync(addressIn(address, 'motd.txt'), 'utf8'), 'Castle')
})

test('another thread comes to the same file by a number of its own', options, async (t) => {
  const { fd } = openFolder(t)
  const given = `${descriptorPath(fd)}/motd.txt`
  const worker = new Worker(new URL('./addresses.testing.ts', import.meta.url), { workerData: given })
  const { promise, resolve, reject } = Promise.withResolvers<CameThere>()
  worker.once('message', resolve).once('error', reject)
  const { address, own, text } = await promise
  await worker.terminate()
  assert.notEqual(address, given)
  assert.equal(address, `/proc/${own}/fd/${fd}/motd.txt`)
  assert.equal(text, 'Castle')
})

test('what is no descriptor of ours stays as it is', () => {
  for (const address of ['/srv/world', '/proc/1/fd/3', '', Buffer.from('/proc/self/fd/3'), null])
    assert.equal(addressHere(address), address)
})
