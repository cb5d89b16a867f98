// The day when the database is gone, as an operator lives it: a disk with a store, the binary, and nothing else.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, test } from 'node:test'
import { assertSameTree, snapshot, type Tree } from '../src/agent/backups/backups.testing.ts'
import { readConfig } from '../src/control/config.ts'
import { startService } from '../src/main.ts'
import { createHttp, type Http } from './support/http.ts'
import { runBinary } from './support/terminal.ts'
import { until } from './support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-recover-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const ADMIN = `gk_admin_${randomBytes(32).toString('hex')}`
const KEY = randomBytes(32).toString('hex')
const keyFile = join(folder, 'key')
writeFileSync(keyFile, `${KEY}\n`, { mode: 0o600 })

/** In this process: what matters here is the binary that recovers. */
async function withService<T>(dataDir: string, key: string | null, work: (http: Http) => Promise<T>): Promise<T> {
  const settings = {
    ...{ GAMEKEEPER_PORT: '0', GAMEKEEPER_LOG_LEVEL: 'fatal' },
    GAMEKEEPER_DATA_DIR: dataDir,
    GAMEKEEPER_ADMIN_TOKEN: ADMIN,
    ...(key ? { GAMEKEEPER_BACKUP_KEY: key } : {}),
  }
  const service = await startService(readConfig(settings))
  try {
    return await work(createHttp(service.url, ADMIN))
  } finally {
    await service.stop()
  }
}

const filesOf = (dataDir: string, serverId: string) => join(dataDir, 'servers', serverId, 'files')

function fill(root: string): void {
  mkdirSync(join(root, 'world/empty'), { recursive: true })
  writeFileSync(join(root, 'world/region'), randomBytes(700_001))
  writeFileSync(join(root, 'level.dat'), 'years of work '.repeat(9999))
  symlinkSync('world/region', join(root, 'link'))
  chmodSync(join(root, 'level.dat'), 0o640)
}

interface Past {
  castle: string
  mine: string
  lockedLater: string
  unlockedLater: string
  other: string
  trees: Map<string, Tree>
}

/** Two servers and their backups, made by a service that is then gone for ever but for its store. */
async function live(dataDir: string, key: string | null): Promise<Past> {
  return withService(dataDir, key, async (http) => {
    const create = async (name: string) => (await http.call('POST', '/servers', { name })).body.id as string
    const [castle, mine] = [await create('Castle'), await create('Mine "Ü"')]
    const trees = new Map<string, Tree>()
    const backup = async (serverId: string, body: object) => {
      const made = await http.backup(serverId, body)
      assert.equal(made.status, 'completed')
      trees.set(made.id, snapshot(filesOf(dataDir, serverId)))
      return made.id as string
    }
    fill(filesOf(dataDir, castle))
    fill(filesOf(dataDir, mine))
    const lockedLater = await backup(castle, { name: 'First' })
    writeFileSync(join(filesOf(dataDir, castle), 'level.dat'), 'another day')
    const unlockedLater = await backup(castle, { name: 'Second', isLocked: true })
    const other = await backup(mine, {})
    assert.equal((await http.call('POST', `/backups/${castle}/${lockedLater}/lock`)).status, 200)
    assert.equal((await http.call('DELETE', `/backups/${castle}/${unlockedLater}/lock`)).status, 200)
    return { castle, mine, lockedLater, unlockedLater, other, trees }
  })
}

const lived = new Map<string | null, Promise<{ dir: string; past: Past }>>()

/** A data directory with a past, a copy for each test: the living takes longer than the copying. */
async function copyOfLife(name: string, key: string | null): Promise<{ dir: string; past: Past }> {
  const dir = join(folder, `life ${key ? 'encrypted' : 'clear'}`)
  if (!lived.has(key))
    lived.set(
      key,
      live(dir, key).then((past) => ({ dir, past })),
    )
  const { past } = (await lived.get(key)) as { past: Past }
  cpSync(dir, join(folder, name), { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
  return { dir: join(folder, name), past }
}

async function recover(args: string[], env: Record<string, string> = {}) {
  const ran = await runBinary(['backup', 'recover', ...args, '--json'], { env, cwd: folder })
  const text = ran.stdout || ran.stderr
  return { code: ran.code, ...JSON.parse(text) }
}

const otherHash = (hash: string) => (hash === 'sha-256' ? 'blake2b-256' : 'sha-256')

async function restored(http: Http, dataDir: string, serverId: string, backupId: string): Promise<Tree> {
  const { body: job } = await http.call('POST', `/backups/${serverId}/${backupId}/restore`, {
    mode: 'replace',
    safetyBackup: false,
  })
  const ended = await until(async () => {
    const { body } = await http.call('GET', `/servers/${serverId}/jobs/${job.id}`)
    return ['completed', 'failed', 'cancelled'].includes(body.status) && body
  })
  assert.equal(ended.status, 'completed', JSON.stringify(ended))
  return snapshot(filesOf(dataDir, serverId))
}

const everythingIn = (dir: string) =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((path) => [path, readFileSync(path).toString('base64')])

for (const [label, key] of [
  ['in the clear', null],
  ['encrypted', KEY],
] as const) {
  test(`from a store ${label} and nothing else, every server and backup comes back, with its lock`, async () => {
    const { dir: old, past } = await copyOfLife(`old ${label}`, key)
    const disk = join(folder, `disk ${label}`)
    cpSync(join(old, 'backups'), disk, { recursive: true })
    rmSync(join(disk, '.unfinished'), { recursive: true, force: true })
    rmSync(old, { recursive: true })
    const before = everythingIn(disk)
    const withKey = key ? ['--key-file', keyFile] : []

    const listed = await recover(['--store', disk, '--list', ...withKey])
    assert.equal(listed.code, 0)
    assert.deepEqual(
      listed.servers.map(({ id, name, backups }: { id: string; name: string; backups: object[] }) => [
        id,
        name,
        backups.length,
      ]),
      [
        [past.castle, 'Castle', 2],
        [past.mine, 'Mine "Ü"', 1],
      ],
    )
    assert.deepEqual(listed.store, { dir: disk, storeId: listed.store.storeId, isEncrypted: key !== null })
    assert.deepEqual([listed.copied, listed.recovered], [null, null])
    assert.deepEqual(everythingIn(disk), before)
    assert.equal(existsSync(join(disk, '.unfinished')), false)
    assert.equal(existsSync(join(folder, 'data')), false)

    const fresh = join(folder, `new ${label}`)
    const done = await recover(['--store', disk, '--data', fresh, ...withKey])
    assert.equal(done.code, 0, JSON.stringify(done))
    assert.deepEqual(done.recovered.servers.sort(), [past.castle, past.mine].sort())
    assert.deepEqual(done.recovered.adopted.sort(), [...past.trees.keys()].sort())
    assert.ok(done.copied.blobCount > 5 && done.copied.bytes > 700_000)
    const again = await recover(['--store', disk, '--data', fresh, ...withKey])
    assert.deepEqual(again.recovered, { servers: [], adopted: [], missing: [], damaged: [] })
    assert.deepEqual(again.copied, { blobCount: 0, bytes: 0 })
    assert.deepEqual(everythingIn(disk), before)

    await withService(fresh, key, async (http) => {
      const { body: servers } = await http.call('GET', '/servers')
      assert.deepEqual(
        servers.data.map(({ id, name }: { id: string; name: string }) => [id, name]).sort(),
        [
          [past.castle, 'Castle'],
          [past.mine, 'Mine "Ü"'],
        ].sort(),
      )
      const read = async (serverId: string, id: string) => (await http.call('GET', `/backups/${serverId}/${id}`)).body
      assert.equal((await read(past.castle, past.lockedLater)).isLocked, true)
      assert.equal((await read(past.castle, past.unlockedLater)).isLocked, false)
      for (const [id, tree] of past.trees) {
        const serverId = id === past.other ? past.mine : past.castle
        assertSameTree(await restored(http, fresh, serverId, id), tree)
      }
      await http.call('PUT', `/backups/${past.castle}/retention`, { keepLast: 1 })
      const made = await http.backup(past.castle)
      const { body: kept } = await http.call('GET', `/backups/${past.castle}`)
      assert.deepEqual(
        kept.data.map(({ id }: { id: string }) => id),
        [made.id, past.lockedLater],
        'retention spares what was locked before the database was lost, and only that',
      )
      const { body: activity } = await http.call('GET', `/servers/${past.castle}/activity?event=backup.adopted`)
      assert.equal(activity.data.length, 2)
      const running = await recover(['--store', disk, '--data', fresh, ...withKey])
      assert.equal(running.code, 2)
      assert.match(running.error.detail, /in use by another Gamekeeper/)
    })
  })
}

test('It is safe to repeat, and to continue after a crash.', async () => {
  const { dir: old, past } = await copyOfLife('cut', null)
  const disk = join(folder, 'cut disk')
  cpSync(join(old, 'backups'), disk, { recursive: true })
  const fresh = join(folder, 'cut new')
  // As a copy leaves it that was cut short after the packs.
  mkdirSync(join(fresh, 'backups'), { recursive: true })
  for (const name of ['format', 'packs']) cpSync(join(disk, name), join(fresh, 'backups', name), { recursive: true })
  const done = await recover(['--store', disk, '--data', fresh])
  assert.ok(done.copied.blobCount > 0 && done.copied.bytes < 100_000, JSON.stringify(done.copied))
  assert.equal(done.recovered.adopted.length, 3)

  // The database is lost and nothing else: the store is where it belongs, and so are the files of the servers.
  for (const name of readdirSync(old).filter((entry) => entry.startsWith('gamekeeper.'))) rmSync(join(old, name))
  const files = snapshot(filesOf(old, past.castle))
  const inPlace = await recover(['--store', old, '--data', old])
  assert.deepEqual(inPlace.copied, { blobCount: 0, bytes: 0 })
  assert.equal(inPlace.recovered.adopted.length, 3)
  assertSameTree(snapshot(filesOf(old, past.castle)), files)

  // Into a service that has backups of its own: both are there afterwards.
  const third = join(folder, 'third')
  // Which hash a new store takes is up to the machine; these two have the same.
  const format = JSON.parse(readFileSync(join(disk, 'format'), 'utf8'))
  mkdirSync(join(third, 'backups'), { recursive: true })
  writeFileSync(join(third, 'backups/format'), JSON.stringify({ ...format, storeId: randomBytes(16).toString('hex') }))
  const own = await live(third, null)
  assert.equal((await recover(['--store', disk, '--data', third])).recovered.adopted.length, 3)
  await withService(third, null, async (http) => {
    assert.equal((await http.call('GET', '/servers')).body.data.length, 4)
    for (const { castle, lockedLater, trees } of [past, own])
      assertSameTree(await restored(http, third, castle, lockedLater), trees.get(lockedLater) ?? {})
  })
  writeFileSync(join(disk, 'format'), JSON.stringify({ ...format, blockHash: otherHash(format.blockHash) }))
  assert.equal((await recover(['--store', disk, '--data', third])).error.code, 'not_alike')
})

test('a damaged manifest is named, and the others come back', async () => {
  const { dir: old, past } = await copyOfLife('damaged', null)
  const manifest = join(old, 'backups/manifests', past.castle, past.lockedLater)
  const bytes = readFileSync(manifest)
  bytes[bytes.length - 60] = (bytes.at(-60) ?? 0) ^ 1
  writeFileSync(manifest, bytes)
  const partly = join(old, 'backups/manifests', past.mine, past.other)
  const entries = readFileSync(partly)
  entries[12] = (entries.at(12) ?? 0) ^ 1
  writeFileSync(partly, entries)

  const fresh = join(folder, 'damaged new')
  const done = await recover(['--store', join(old, 'backups'), '--data', fresh])
  assert.equal(done.code, 1)
  const all: { id: string; damage: string | null }[] = done.servers.flatMap(
    (server: { backups: object[] }) => server.backups,
  )
  const damageOf = (id: string) => all.find((backup) => backup.id === id)?.damage
  assert.match(damageOf(past.lockedLater) ?? '', new RegExp(`manifests/${past.castle}/${past.lockedLater}: .*damaged`))
  assert.match(damageOf(past.other) ?? '', /the chunk at 8 is damaged/)
  assert.equal(damageOf(past.unlockedLater), null)
  // The other says nothing about its backup any more: it is named above, and left where it is.
  assert.deepEqual(done.recovered.damaged, [past.other])
  assert.ok(!existsSync(join(fresh, 'backups/manifests', past.castle, past.lockedLater)))
  assert.deepEqual(done.recovered.adopted.sort(), [past.unlockedLater, past.other].sort())
  const shown = await runBinary(['backup', 'recover', '--store', old, '--list'])
  assert.deepEqual(
    [shown.code, /damaged: manifests\//.test(shown.stdout), /Castle/.test(shown.stdout)],
    [1, true, true],
  )
  await withService(fresh, null, async (http) => {
    assert.equal((await http.call('GET', `/backups/${past.mine}/${past.other}`)).body.error.code, 'backup_damaged')
    assert.equal((await http.call('GET', `/backups/${past.castle}/${past.lockedLater}`)).status, 404)
  })
})

test('a backup whose packs the store does not have whole is damaged, in the list, in the exit code and in the service', async () => {
  const { dir: old, past } = await copyOfLife('incomplete', null)
  const store = join(old, 'backups')
  const packs = everythingIn(join(store, 'packs')).map(([path = '']) => path)
  const sizes = packs.map((path) => statSync(path).size)
  // One backup each: of the first the largest, with what the second server has as well; then of that, then of one small change.
  const [, cut = '', lost = ''] = packs.toSorted((a, b) => statSync(b).size - statSync(a).size)
  const listed = async () => {
    const { code, servers } = await recover(['--store', store, '--list'])
    const all: { id: string; damage: string | null }[] = servers.flatMap((each: { backups: object[] }) => each.backups)
    return { code, damage: new Map(all.map(({ id, damage }) => [id, damage])) }
  }
  assert.deepEqual([...new Set((await listed()).damage.values())], [null])

  const bytes = readFileSync(lost)
  rmSync(lost)
  const harmed = ({ damage }: { damage: Map<string, string | null> }) =>
    [...damage].filter(([, what]) => what !== null).map(([id]) => id)
  const without = await listed()
  assert.deepEqual([without.code, harmed(without)], [1, [past.unlockedLater]])
  const sentence = new RegExp(`^missing blocks: 1, the first in packs/../${basename(lost)}, which is not there$`)
  assert.match(without.damage.get(past.unlockedLater) ?? '', sentence)
  truncateSync(cut, statSync(cut).size - 1)
  const both = await listed()
  const damaged = [past.unlockedLater, past.other].sort()
  assert.deepEqual([both.code, harmed(both).sort()], [1, damaged])
  assert.match(both.damage.get(past.other) ?? '', /has \d+ bytes instead of \d+$/)

  const fresh = join(folder, 'incomplete new')
  for (const isAgain of [false, true]) {
    const done = await recover(['--store', store, '--data', fresh])
    assert.deepEqual([done.code, done.recovered.damaged.sort()], [1, damaged])
    assert.equal(done.recovered.adopted.length, isAgain ? 0 : 3)
  }
  await withService(fresh, null, async (http) => {
    for (const id of past.trees.keys()) {
      const { body } = await http.call('GET', `/backups/${id === past.other ? past.mine : past.castle}/${id}`)
      assert.equal(body.status, 'completed')
      assert.equal(body.error?.code, damaged.includes(id) ? 'backup_damaged' : undefined)
    }
  })

  // With the packs, and without what lists them.
  writeFileSync(lost, bytes)
  writeFileSync(cut, readFileSync(join(folder, 'life clear', cut.slice(old.length))))
  assert.deepEqual(
    packs.map((path) => statSync(path).size),
    sizes,
  )
  assert.equal((await listed()).code, 0)
  rmSync(join(store, 'index'), { recursive: true })
  const unlisted = await listed()
  assert.equal(unlisted.code, 1)
  assert.match([...unlisted.damage.values()][0] ?? '', /the first in no index, nor are packs: \d+$/)
})

test('what is no store, or is sealed with another key, is refused with a code, and nothing is made', async () => {
  const empty = join(folder, 'empty')
  mkdirSync(empty)
  const fresh = join(folder, 'never')
  const refused = async (args: string[], env: Record<string, string> = {}) => {
    const { code, error } = await recover([...args, '--data', fresh], env)
    assert.equal(existsSync(fresh), false)
    return [code, error.code]
  }
  assert.deepEqual(await refused(['--store', empty]), [4, 'no_store'])
  assert.deepEqual(await refused(['--store', join(folder, 'nowhere')]), [4, 'no_store'])
  assert.deepEqual(readdirSync(empty), [])
  writeFileSync(join(empty, 'format'), '{"version": 3}')
  assert.deepEqual(await refused(['--store', empty]), [1, 'unknown_format'])

  const { dir: sealed } = await copyOfLife('sealed', KEY)
  assert.deepEqual(await refused(['--store', sealed]), [1, 'key_needed'])
  const wrong = { GAMEKEEPER_BACKUP_KEY: randomBytes(32).toString('hex') }
  assert.deepEqual(await refused(['--store', sealed], wrong), [1, 'wrong_key'])
  const { dir: clear } = await copyOfLife('clear', null)
  assert.deepEqual(await refused(['--store', clear], wrong), [1, 'wrong_key'])
  const mixed = await recover(['--store', sealed, '--data', clear], { GAMEKEEPER_BACKUP_KEY: KEY })
  assert.deepEqual([mixed.code, mixed.error.code], [1, 'not_alike'])
  assert.equal((await recover(['--list'])).error.code, 'usage')
})
