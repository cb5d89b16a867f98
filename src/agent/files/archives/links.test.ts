// Links in archives stay inside, also by way of one another, in whatever order they come, and of two archives.
import assert from 'node:assert/strict'
import { lstatSync, readlinkSync, realpathSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { entry, start, writeArchiveTo } from './archives.testing.ts'
import type { ArchiveEntry } from './entry.ts'
import { TAR_END, tarMember } from './spoiled.testing.ts'
import { unpack } from './unpack.ts'

const WORK = { kind: 'files.unpack', path: '/a', directory: '/out' } as const
const link = (path: string, target: string) => entry(path, { kind: 'symlink', target })
const directory = (path: string) => entry(path, { kind: 'directory' })

// `a/b/c/up` is the top of the archive; three steps up from there is outside of the server.
const UP = link('a/b/c/up', '../../..')
const OUT = link('out', 'a/b/c/up/../../..')

const LEAVING: Record<string, ArchiveEntry[]> = {
  'a link by way of an earlier one': [directory('a/b/c'), UP, OUT],
  'a link by way of a later one': [directory('a/b/c'), OUT, UP],
  'a link by way of one that another archive may bring': [OUT],
  'a link through a link to a link': [directory('a/b/c'), UP, link('second', 'a/b/c/up'), link('third', 'second/..')],
  'a link that climbs at once': [link('a/b/l', '../../../x')],
  'a link that climbs in the end': [link('a/b/l', 'x/y/../../../../..')],
  'a link to nothing': [link('l', '')],
}
for (const format of ['zip', 'tar'] as const)
  for (const [what, entries] of Object.entries(LEAVING))
    test(`${format}: ${what} is refused, and nothing is written`, async (t) => {
      const { server, at, tree, staged, context } = await start(t)
      await writeArchiveTo(at('a'), format, entries)
      await assert.rejects(unpack(server, WORK, context), { code: 'invalid_archive' })
      assert.deepEqual(tree(), ['a'])
      assert.deepEqual(staged(), [])
    })

for (const format of ['zip', 'tar'] as const)
  test(`${format}: links that stay inside are kept as they are`, async (t) => {
    const { server, at, context } = await start(t)
    const targets = { 'a/b/up': '../..', 'a/b/side': '../c/./d', down: 'a/b', self: '.', 'a/b/dangling': 'nowhere/x' }
    const links = Object.entries(targets).map(([path, target]) => link(path, target))
    await writeArchiveTo(at('a'), format, [entry('a/c/d', { text: 'x' }), ...links])
    await unpack(server, WORK, context)
    for (const [path, target] of Object.entries(targets)) {
      assert.ok(lstatSync(at(`out/${path}`)).isSymbolicLink())
      assert.equal(readlinkSync(at(`out/${path}`)), target)
    }
    assert.equal(realpathSync(at('out/down/up')), realpathSync(at('out')))
    assert.equal(realpathSync(at('out/a/b/side')), realpathSync(at('out/a/c/d')))
  })

test('tar: a hard link is refused, to whatever it points, and nothing is written', async (t) => {
  const { server, at, tree, staged, context } = await start(t)
  for (const target of ['f', '../../../../etc/passwd', '/etc/passwd']) {
    const members = [tarMember({ name: 'f', type: '0' }, Buffer.from('x')), tarMember({ name: 'l', type: '1', target })]
    writeFileSync(at('a'), Buffer.concat([...members, TAR_END]))
    await assert.rejects(unpack(server, WORK, context), { code: 'invalid_archive' })
    assert.deepEqual(tree(), ['a'])
    assert.deepEqual(staged(), [])
  }
})
