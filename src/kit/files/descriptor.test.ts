import assert from 'node:assert/strict'
import { fstatSync, mkdtempSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Descriptor, openDescriptor } from './descriptor.ts'

const dir = mkdtempSync(join(tmpdir(), 'gamekeeper-descriptor-'))
const path = join(dir, 'f')
writeFileSync(path, 'hello')
test.after(() => rmSync(dir, { recursive: true }))

const isOpenAt = (fd: number) => {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`) === path
  } catch {
    return false
  }
}

test('a descriptor is closed once, and whoever uses it afterwards hears of it', async () => {
  const file = openDescriptor(path, 'r')
  const { fd } = file
  assert.equal(fstatSync(fd).size, 5)
  file[Symbol.dispose]()
  file[Symbol.dispose]()
  assert.equal(isOpenAt(fd), false)
  assert.throws(() => file.fd, /after it was closed/)
  await assert.rejects(file.read(Buffer.alloc(1), 0, 1, 0), /after it was closed/)
})

test('closed while a call is under way, it is closed when the call has ended', async () => {
  const file = openDescriptor(path, 'r')
  const { fd } = file
  const { promise, resolve } = Promise.withResolvers<void>()
  const working = file.use(async () => await promise)
  file[Symbol.dispose]()
  file[Symbol.dispose]()
  assert.throws(() => file.fd, /after it was closed/)
  assert.equal(isOpenAt(fd), true)
  resolve()
  await working
  assert.equal(isOpenAt(fd), false)
})

test('what is handed over has one owner', () => {
  const file = openDescriptor(path, 'r')
  const { fd } = file
  using taken = file.transfer()
  file[Symbol.dispose]()
  assert.throws(() => file.transfer(), /after it was closed/)
  assert.equal(taken.fd, fd)
  assert.equal(isOpenAt(fd), true)
  assert.ok(taken instanceof Descriptor)
})
