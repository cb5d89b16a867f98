// What a backup passes over, since nobody has touched it, and everything that must make it look again.
import assert from 'node:assert/strict'
import fs, {
  appendFileSync,
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { it, type TestContext } from 'node:test'
import fc from 'fast-check'
import { blobsIn, flip } from '../../blobs/store.testing.ts'
import { newId } from '../../kit/ids.ts'
import { mount, openDescriptors, untilDescriptors, withoutRoot } from '../files/trees.testing.ts'
import { assertSameTree, snapshot, startAgent, type TestAgent, type Tree, testAgent } from './backups.testing.ts'
import { openManifest } from './format/manifest.ts'

const SERVER = 'srv_a'
/** By then all that was just written counts as settled. */
const LATER_MS = 10_000
/** Of a file that is opened by the walk itself. */
const LARGE_BYTES = 1024 ** 2
/** The one directory that every backup lists. */
const TOP = 1

interface Scene {
  agent: TestAgent
  root: string
  at(path: string): string
}

/** Names that sort close to a directory's, and around what separates it from what it holds. */
function fill(root: string): void {
  for (const folder of ['world', 'world/region', 'world/region.old', 'world.bak', 'world!', 'plugins/a/b/c', 'zeta'])
    mkdirSync(join(root, folder), { recursive: true })
  for (let index = 0; index < 40; index++) {
    writeFileSync(join(root, `world/region/r.${index}.mca`), `region ${index}`)
    writeFileSync(join(root, `plugins/a/b/c/settings ${index}.yml`), `setting: ${index}`)
  }
  for (const path of ['world.txt', 'world/level.dat', 'world!/x', 'world.bak/y', 'plugins/a/z', 'würfel', 'zeta/last'])
    writeFileSync(join(root, path), path)
  writeFileSync(Buffer.concat([Buffer.from(`${root}/zeta/`), Buffer.of(0xff, 0xfe)]), 'not UTF-8')
  symlinkSync('world/level.dat', join(root, 'link'))
  mkdirSync(join(root, 'empty'))
}

/** A tree of which there is a backup, some ticks of the file system's clock later. */
async function scene(t: TestContext, options: Parameters<typeof testAgent>[1] = {}): Promise<Scene> {
  const realNow = Date.now
  t.mock.method(Date, 'now', () => realNow() + LATER_MS)
  const agent = await testAgent(t, options)
  const root = agent.filesOf(SERVER)
  fill(root)
  await agent.create(SERVER)
  untilLater(agent)
  return { agent, root, at: (path) => join(root, path) }
}

/** What changes from now on has another time than all that was there. */
function untilLater({ dataDir }: TestAgent): void {
  const probe = join(dataDir, 'probe')
  const changedAt = () => {
    writeFileSync(probe, '')
    return lstatSync(probe, { bigint: true }).ctimeNs
  }
  const before = changedAt()
  while (changedAt() === before);
}

/** How often a directory was listed meanwhile. */
async function listings(t: TestContext, work: () => Promise<unknown>): Promise<number> {
  const listed = t.mock.method(fs, 'readdirSync')
  syncBuiltinESMExports()
  try {
    await work()
    return listed.mock.callCount()
  } finally {
    listed.mock.restore()
    syncBuiltinESMExports()
  }
}

const directoriesIn = (root: string) =>
  Object.values(snapshot(root)).filter(({ is }) => is.startsWith('directory')).length

async function restored(agent: TestAgent, backupId: string): Promise<Tree> {
  const targetId = newId('srv')
  const target = agent.filesOf(targetId)
  await agent.restore(targetId, backupId, { sourceServerId: SERVER })
  return snapshot(target)
}

/** A backup that says what is there, in what it counts and in what it brings back. */
async function assertBackedUp({ agent, root }: Omit<Scene, 'at'>): Promise<string> {
  const tree = snapshot(root)
  const { backupId, fileCount, directoryCount, symlinkCount } = await agent.create(SERVER)
  assertSameTree(await restored(agent, backupId), tree)
  const kinds = Object.values(tree).map(({ is }) => is.split(' ')[0])
  const count = (kind: string) => kinds.filter((one) => one === kind).length
  assert.deepEqual([fileCount, directoryCount, symlinkCount], [count('file'), count('directory'), count('link')])
  untilLater(agent)
  return backupId
}

it('what nobody has touched is neither listed nor described again', async (t) => {
  const here = await scene(t)
  assert.equal(await listings(t, () => here.agent.create(SERVER)), TOP)
  await assertBackedUp(here)
})

it('where one file has changed, only what is around it is listed', async (t) => {
  const here = await scene(t)
  writeFileSync(here.at('world/region/r.20.mca'), 'changed')
  const listed = await listings(t, () => here.agent.create(SERVER))
  assert.ok(listed > 1 && listed <= 4, `${listed} directories`)
  untilLater(here.agent)
  await assertBackedUp(here)
})

const CHANGES: Record<string, (here: Scene) => void> = {
  'a new file at the top': ({ at }) => writeFileSync(at('a first'), 'new'),
  'a new file after all others': ({ at }) => writeFileSync(at('zz last'), 'new'),
  'a new file far down': ({ at }) => writeFileSync(at('plugins/a/b/c/new'), 'new'),
  'a new file in an empty directory': ({ at }) => writeFileSync(at('empty/new'), 'new'),
  'a new directory that sorts before what another holds': ({ at }) => mkdirSync(at('world/region!')),
  'a file whose time was put back': ({ at }) => {
    const path = at('world/region/r.7.mca')
    const { mtime, atime } = lstatSync(path)
    writeFileSync(path, 'REGION 7')
    utimesSync(path, atime, mtime)
  },
  'a directory whose time was put back': ({ at }) => {
    const { mtime, atime } = lstatSync(at('world/region'))
    writeFileSync(at('world/region/hidden'), 'new')
    utimesSync(at('world/region'), atime, mtime)
  },
  'several files, the first and last of what is listed together': ({ at }) => {
    writeFileSync(at('a new one'), 'new')
    for (let index = 0; index < 40; index += 3) writeFileSync(at(`world/region/r.${index}.mca`), `changed ${index}`)
    for (let index = 1; index < 40; index += 4) writeFileSync(at(`plugins/a/b/c/settings ${index}.yml`), 'changed')
  },
  'files all over, in directories that are as they were': ({ at }) => {
    for (let index = 0; index < 40; index += 3) writeFileSync(at(`world/region/r.${index}.mca`), `changed ${index}`)
    for (let index = 1; index < 40; index += 4) writeFileSync(at(`plugins/a/b/c/settings ${index}.yml`), 'changed')
    writeFileSync(at('zeta/last'), 'changed')
    writeFileSync(at('würfel'), 'changed')
  },
  'a file that is gone': ({ at }) => unlinkSync(at('world/region/r.39.mca')),
  'the last file of all': ({ at }) => unlinkSync(at('würfel')),
  'a directory that is gone with all it held': ({ at }) => rmSync(at('world/region'), { recursive: true }),
  'an empty directory that is gone': ({ at }) => rmdirSync(at('empty')),
  'a file under another name': ({ at }) => renameSync(at('plugins/a/z'), at('plugins/a/a')),
  'a file in another directory': ({ at }) => renameSync(at('world/region/r.0.mca'), at('zeta/r.0.mca')),
  'a directory under another name': ({ at }) => renameSync(at('plugins/a/b'), at('plugins/a/y')),
  'two directories that have changed places': ({ at }) => {
    renameSync(at('world/region'), at('aside'))
    renameSync(at('world/region.old'), at('world/region'))
    renameSync(at('aside'), at('world/region.old'))
  },
  'a directory that has become a link to itself elsewhere': ({ at }) => {
    renameSync(at('plugins/a/b/c'), at('plugins/a/b/moved'))
    symlinkSync('moved', at('plugins/a/b/c'))
  },
  'a file that has become a directory': ({ at }) => {
    unlinkSync(at('world/level.dat'))
    mkdirSync(at('world/level.dat'))
    writeFileSync(at('world/level.dat/within'), 'new')
  },
  'a directory that has become a file': ({ at }) => {
    rmSync(at('world/region'), { recursive: true })
    writeFileSync(at('world/region'), 'a file')
  },
  'a link that leads elsewhere': ({ at }) => {
    unlinkSync(at('link'))
    symlinkSync('world/level.dax', at('link'))
  },
  'another mode': ({ at }) => chmodSync(at('world/region/r.1.mca'), 0o600),
  'another mode of a directory': ({ at }) => chmodSync(at('plugins/a/b/c'), 0o700),
  'a second name for a file': ({ at }) => linkSync(at('world/region/r.3.mca'), at('zeta/second')),
  'nothing but a name that was there before': ({ at }) => {
    renameSync(at('zeta/last'), at('zeta/gone'))
    renameSync(at('zeta/gone'), at('zeta/last'))
  },
}

for (const [what, change] of Object.entries(CHANGES))
  it(`${what} is in the next backup, and in the one after`, async (t) => {
    const here = await scene(t)
    change(here)
    untilLater(here.agent)
    await assertBackedUp(here)
    await assertBackedUp(here)
  })

it('Whatever has come, gone or changed is in the next backup, also where its time was put back.', async (t) => {
  const here = await scene(t)
  const change = fc.constantFrom(...Object.keys(CHANGES))
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 4 }), async (changes) => {
      for (const what of changes)
        try {
          CHANGES[what]?.(here)
        } catch {
          // An earlier one has left nothing to change.
        }
      untilLater(here.agent)
      await assertBackedUp(here)
    }),
    { numRuns: 40 },
  )
})

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

it('where only files have changed, no directory is listed but theirs', async (t) => {
  const here = await scene(t)
  writeFileSync(here.at('plugins/a/b/c/settings 7.yml'), 'changed')
  untilLater(here.agent)
  const ways = ['plugins', 'plugins/a', 'plugins/a/b', 'plugins/a/b/c']
  assert.equal(await listings(t, () => here.agent.create(SERVER)), TOP + ways.length)
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

it('what was ignored and is not any more is in the next backup, and the other way round', async (t) => {
  const { agent } = await scene(t)
  const listed = async (ignored: string) =>
    Object.keys(await restored(agent, (await agent.create(SERVER, { ignored })).backupId))
  assert.ok((await listed('')).includes('/world/region/r.5.mca'))
  assert.ok(!(await listed('r.5.mca')).includes('/world/region/r.5.mca'))
  assert.equal(await listings(t, () => agent.create(SERVER, { ignored: 'r.5.mca' })), TOP)
  assert.ok((await listed('')).includes('/world/region/r.5.mca'))
  assert.ok(!(await listed('world/')).includes('/world/level.dat'))
})

it('what could not be in the last backup is looked for by every backup', async (t) => {
  const here = await scene(t)
  const socket = createServer().listen(here.at('world/region/socket'))
  t.after(() => socket.close())
  const warnings = async () => (await here.agent.create(SERVER)).warningCount
  untilLater(here.agent)
  assert.deepEqual([await warnings(), await warnings(), await warnings()], [1, 1, 1])
})

it('where something is mounted, everything is walked', { skip: withoutRoot() }, async (t) => {
  const here = await scene(t)
  // It looks as it did, since it is the same directory.
  using _mounted = mount(here.at('world/region'), '--bind', here.at('world/region'))
  const { warnings } = await here.agent.create(SERVER)
  assert.deepEqual(warnings, ['/world/region is another file system; what it holds is not in the backup.'])
})

it('where a directory may not show what has come, everything is listed', async (t) => {
  const { agent, root } = await scene(t)
  const { statfsSync } = fs
  const FUSE = 0x65735546
  const asked = t.mock.method(fs, 'statfsSync', (path: string) => ({ ...statfsSync(path), type: FUSE }))
  assert.equal(await listings(t, () => agent.create(SERVER)), TOP + directoriesIn(root))
  assert.ok(asked.mock.callCount() > 0)
  asked.mock.restore()
  syncBuiltinESMExports()
})

it('the first backup after a start lists everything', async (t) => {
  const { agent, root } = await scene(t)
  await agent.stop()
  const again = await startAgent(agent.dataDir)
  t.after(() => again.stop())
  assert.equal(await listings(t, () => again.create(SERVER)), TOP + directoriesIn(root))
  await assertBackedUp({ agent: again, root })
})

it('a chunk that is damaged is written anew, though nothing it lists has changed', async (t) => {
  const here = await scene(t)
  for (const part of blobsIn(here.agent.storeDir, 'parts')) flip(part, 40)
  const backupId = await assertBackedUp(here)
  const { damage } = await here.agent.run({ kind: 'backups.verify', backupId }, SERVER)
  assert.deepEqual(
    damage.flatMap(({ touches }) => touches),
    [],
  )
})

it('a block that is lost is read again, though its file has not changed', async (t) => {
  const here = await scene(t)
  await here.agent.create(SERVER)
  for (const pack of blobsIn(here.agent.storeDir, 'packs')) flip(pack, 40)
  assert.notDeepEqual((await here.agent.run({ kind: 'backups.scrub', share: 1 })).damage, [])
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
