// A rename that must not replace anything is a link and an unlink. Where the disk takes the one and refuses the other,
// nothing has happened.
import assert from 'node:assert/strict'
import fs, { readdirSync, readFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { test } from 'node:test'
import { request, serverId, startServer } from './server.testing.ts'

/** The first unlink fails with this error number. */
function failingUnlink(code: string): Disposable {
  const { unlinkSync } = fs
  const restore = () => {
    fs.unlinkSync = unlinkSync
    syncBuiltinESMExports()
  }
  fs.unlinkSync = () => {
    restore()
    throw Object.assign(new Error(`${code}: injected, unlink`), { code })
  }
  syncBuiltinESMExports()
  return { [Symbol.dispose]: restore }
}

for (const errno of ['EPERM', 'EIO'])
  test(`a copy, a move and a restore from the trash that fail with ${errno} have not happened`, async (t) => {
    const { agent, at } = await startServer(t, { a: 'a', b: 'b' })
    const names = () => readdirSync(at('')).sort()
    const refused = async (work: () => Promise<unknown>) => {
      using _disk = failingUnlink(errno)
      await assert.rejects(work)
    }
    await refused(() => agent.copy(request({ location: '/a' })))
    assert.deepEqual(names(), ['a', 'b'])
    await refused(() => agent.move(request({ moves: [{ from: '/a', to: '/c' }] })))
    assert.deepEqual(names(), ['a', 'b'])
    await agent.remove(request({ root: '/', files: ['b'] }))
    const [item] = (await agent.listTrash({ serverId })).items
    await refused(() => agent.restoreTrash(request({ trashId: item?.id ?? '' })))
    assert.deepEqual(names(), ['a'])
    await agent.restoreTrash(request({ trashId: item?.id ?? '' }))
    assert.deepEqual(names(), ['a', 'b'])
    assert.equal(readFileSync(at('b'), 'utf8'), 'b')
  })
