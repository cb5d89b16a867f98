// What a backup passes over, since nobody has touched it, and everything that must make it look again.
import assert from 'node:assert/strict'
import fs, {
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
import { it } from 'node:test'
import fc from 'fast-check'
import { blobsIn, flip } from '../../../blobs/store.testing.ts'
import { mount, withoutRoot } from '../../files/trees.testing.ts'
import { startAgent } from '../backups.testing.ts'
import {
  assertBackedUp,
  directoriesIn,
  listings,
  restored,
  type Scene,
  SERVER,
  scene,
  TOP,
  untilLater,
} from './passing.testing.ts'

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

it('where only files have changed, no directory is listed but theirs', async (t) => {
  const here = await scene(t)
  writeFileSync(here.at('plugins/a/b/c/settings 7.yml'), 'changed')
  untilLater(here.agent)
  const ways = ['plugins', 'plugins/a', 'plugins/a/b', 'plugins/a/b/c']
  assert.equal(await listings(t, () => here.agent.create(SERVER)), TOP + ways.length)
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
