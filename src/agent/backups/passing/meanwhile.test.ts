// What happens to a tree while a backup passes over it is in the next one.
import assert from 'node:assert/strict'
import fs, {
  appendFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import { it, type TestContext } from 'node:test'
import { newId } from '../../../kit/ids.ts'
import { openDescriptors, untilDescriptors } from '../../files/trees.testing.ts'
import { openManifest } from '../format/manifest.ts'
import { assertBackedUp, listings, restored, type Scene, SERVER, scene, untilLater } from './passing.testing.ts'

/** Of a file that is opened by the walk itself. */
const LARGE_BYTES = 1024 ** 2

it('what a game writes when it is asked to save is in the backup that asks', async (t) => {
  let save = () => {}
  const holdWorld = async () => {
    save()
    return { release: async () => ({ how: 'saved' as const, heldMs: 1, warnings: [] }) }
  }
  const { agent, at } = await scene(t, { games: { requireStopped: () => {}, holdWorld } })
  for (const path of ['saved', 'world/region/saved', 'empty/saved']) {
    save = () => writeFileSync(at(path), 'saved')
    const { backupId } = await agent.create(SERVER)
    assert.ok(`/${path}` in (await restored(agent, backupId)), path)
    untilLater(agent)
  }
})

/** A backup during which something happens: when the walk comes to a large file that has changed, after all was compared. */
async function meanwhile(t: TestContext, { agent, at }: Scene, happens: () => void): Promise<string> {
  // Zeros take little room in a chunk: the same lists the directories that come next.
  appendFileSync(at('pl'), Buffer.alloc(LARGE_BYTES))
  untilLater(agent)
  const { openSync } = fs
  let isOver = false
  const opened = t.mock.method(fs, 'openSync', (...given: Parameters<typeof openSync>) => {
    if (!isOver && String(given[0]).endsWith('/pl')) {
      isOver = true
      happens()
    }
    return openSync(...given)
  })
  syncBuiltinESMExports()
  const { backupId } = await agent.create(SERVER).finally(() => {
    opened.mock.restore()
    syncBuiltinESMExports()
  })
  assert.ok(isOver)
  untilLater(agent)
  return backupId
}

it('what comes while a backup runs is in the next one', async (t) => {
  const here = await scene(t)
  await meanwhile(t, here, () => {})
  await meanwhile(t, here, () => writeFileSync(here.at('plugins/a/zz new'), 'new'))
  await assertBackedUp(here)
  // And what the walk finds as it was does not make it list what is in there.
  const listed = await listings(t, () => meanwhile(t, here, () => {}))
  assert.ok(listed < 8, `${listed} directories`)
})

for (const [what, replace] of Object.entries({
  'is gone': () => {},
  'is a directory': (path: string) => {
    mkdirSync(path)
    writeFileSync(join(path, 'within'), 'new')
  },
  'is a symlink': (path: string) => symlinkSync('/', path),
  'is another file': (path: string) => writeFileSync(path, 'another'),
}))
  it(`a file that has changed, and ${what} before its backup comes to it, is in the next one as it is`, async (t) => {
    const here = await scene(t)
    await meanwhile(t, here, () => {})
    const changed = here.at('plugins/a/b/c/settings 7.yml')
    writeFileSync(changed, 'changed')
    const backupId = await meanwhile(t, here, () => {
      unlinkSync(changed)
      replace(changed)
    })
    const tree = await restored(here.agent, backupId)
    assert.ok('/plugins/a/b/c/settings 8.yml' in tree)
    assert.equal(
      '/plugins/a/b/c/settings 7.yml' in tree,
      lstatSync(changed, { throwIfNoEntry: false })?.isDirectory() === false,
    )
    await assertBackedUp(here)
    await assertBackedUp(here)
  })

for (const [what, replace] of Object.entries({
  nothing: () => {},
  'a symlink': (path: string) => symlinkSync('/', path),
  'a file': (path: string) => writeFileSync(path, 'a file'),
}))
  it(`a directory that becomes ${what} while a backup runs leaves nothing in it without itself`, async (t) => {
    const here = await scene(t)
    await meanwhile(t, here, () => {})
    const backupId = await meanwhile(t, here, () => {
      renameSync(here.at('plugins/a'), here.at('zeta/moved'))
      replace(here.at('plugins/a'))
    })
    const { blobs, sealer } = await here.agent.backups.repository()
    const manifest = await openManifest(blobs, sealer, { serverId: SERVER, backupId })
    const directories = new Set(['/'])
    for await (const { path, kind } of manifest.entries()) {
      assert.ok(directories.has(dirname(path)), path)
      if (kind === 'directory') directories.add(path)
    }
    await assertBackedUp(here)
  })

it('a backup that is stopped while it compares leaves nothing open', async (t) => {
  const here = await scene(t)
  const before = openDescriptors()
  const stop = new AbortController()
  const what = { backupId: newId('bkp'), name: 'stopped', createdAt: 0, ignored: '', isLocked: false }
  const { lstatSync: look } = fs
  const looked = t.mock.method(fs, 'lstatSync', (path: string, options: object) => {
    if (String(path).endsWith('/settings 20.yml')) stop.abort()
    return look(path, options)
  })
  syncBuiltinESMExports()
  await assert.rejects(here.agent.run({ kind: 'backups.create', ...what }, SERVER, stop.signal))
  assert.ok(stop.signal.aborted)
  looked.mock.restore()
  syncBuiltinESMExports()
  await untilDescriptors(before)
  await assertBackedUp(here)
})

it('a file that goes after its directory was looked at takes none of the next directory with it', async (t) => {
  const { agent, root, at } = await scene(t)
  const { blobs, sealer } = await agent.backups.repository()
  for (const name of readdirSync(root)) rmSync(at(name), { recursive: true })
  for (const folder of ['a/y', 'b']) mkdirSync(at(folder), { recursive: true })
  writeFileSync(at('a/y/inner'), 'inner')
  for (let index = 0; index < 12; index++) writeFileSync(at(`b/f${index}`), `b ${index}`)
  writeFileSync(at('a/zz'), 'the first of its chunk, and the last of its directory')
  const chunksBegin = async () => {
    untilLater(agent)
    const { backupId } = await agent.create(SERVER)
    return (await openManifest(blobs, sealer, { serverId: SERVER, backupId })).firstKeys
  }
  for (let index = 100; (await chunksBegin()).indexOf('a\0zz') < 2; index++) writeFileSync(at(`a/${index}`), '')
  await chunksBegin()
  // Before the backup: so that the walk is in `a`, and has something to find in `b`.
  writeFileSync(at('a/y/new'), 'new')
  writeFileSync(at('b/f6'), 'changed')
  untilLater(agent)
  const { lstatSync: look } = fs
  let isGone = false
  const looked = t.mock.method(fs, 'lstatSync', (path: string, options: object) => {
    if (!isGone && String(path).endsWith('/zz')) {
      isGone = true
      unlinkSync(at('a/zz'))
    }
    return look(path, options)
  })
  syncBuiltinESMExports()
  const { backupId } = await agent.create(SERVER).finally(() => {
    looked.mock.restore()
    syncBuiltinESMExports()
  })
  assert.ok(isGone)
  assert.ok('/b/f6' in (await restored(agent, backupId)))
  untilLater(agent)
  await assertBackedUp({ agent, root })
  await assertBackedUp({ agent, root })
})
