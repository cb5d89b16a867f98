import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { chmodSync, linkSync, lstatSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { isFailure } from '../../contract/errors.ts'
import { assertSameTree, snapshot, testAgent } from '../backups/backups.testing.ts'
import { code, request, serverId, startServer } from './server.testing.ts'
import { fillTree, makeTree, mount, openDescriptors, withoutRoot } from './trees.testing.ts'

const modeOf = (path: string) => (lstatSync(path).mode & 0o7777).toString(8).padStart(4, '0')
type Started = Awaited<ReturnType<typeof startServer>>

/** Runs `change` when everything is checked and the intent is on disk, as another program may at any time. */
function meanwhile({ server }: Started, change: () => void): void {
  const { journal } = server
  const { begin } = journal
  journal.begin = (intent) => {
    journal.begin = begin
    const begun = begin(intent)
    return { ...begun, durable: begun.durable.then(change) }
  }
}

const kindsIn = async ({ server }: Started) =>
  (await server.journal.readAllOf({ serverId, limit: 10 })).map(({ kind, properties }) => [kind, properties])

test('files and folders get the mode, whatever they are called, and what a folder holds does not', async (t) => {
  const started = await startServer(t, { 'd/x': 'x', 'd/sub/y': 'y', 'odd \\ name ': 'z' })
  const { agent, at } = started
  for (const path of ['d', 'd/sub']) chmodSync(at(path), 0o755)
  const files = ['x', 'sub', '/./x', 'x']
  const { data } = await agent.setMode(request({ root: '/d', files, mode: 0o710 }))
  assert.deepEqual(
    data.map(({ path, kind, mode }) => [path, kind, mode]),
    [
      ['/d/x', 'file', '0710'],
      ['/d/sub', 'directory', '0710'],
    ],
  )
  await agent.setMode(request({ root: '/', files: ['odd \\ name '], mode: 0o600 }))
  assert.deepEqual(
    ['d', 'd/x', 'd/sub', 'd/sub/y', 'odd \\ name '].map((path) => modeOf(at(path))),
    ['0755', '0710', '0710', '0644', '0600'],
  )
  assert.deepEqual(await kindsIn(started), [
    ['file.mode_changed', { paths: ['/d/x', '/d/sub'], count: 2, mode: '0710' }],
    ['file.mode_changed', { paths: ['/odd \\ name '], count: 1, mode: '0600' }],
  ])
})

test('what has the mode already is answered and not told of', async (t) => {
  const started = await startServer(t, { a: 'a', b: 'b' })
  const { agent, at } = started
  chmodSync(at('a'), 0o600)
  const ctime = lstatSync(at('a'), { bigint: true }).ctimeNs
  const { data } = await agent.setMode(request({ root: '/', files: ['a', 'b'], mode: 0o600 }))
  assert.deepEqual(
    data.map(({ path }) => path),
    ['/a', '/b'],
  )
  await agent.setMode(request({ root: '/', files: ['a', 'b'], mode: 0o600 }))
  assert.deepEqual(await kindsIn(started), [['file.mode_changed', { paths: ['/b'], count: 1, mode: '0600' }]])
  assert.equal(lstatSync(at('a'), { bigint: true }).ctimeNs, ctime)
})

test('one entry that cannot be changed, and none is; nothing is told', async (t) => {
  const started = await startServer(t, { fine: 'x', 'd/': '', 'outside/secret': 's' })
  const { agent, at } = started
  symlinkSync('outside/secret', at('link'))
  symlinkSync('outside', at('way'))
  symlinkSync('nowhere', at('dangling'))
  execFileSync('mkfifo', [at('fifo')])
  const before = ['fine', 'd', 'link', 'fifo', 'outside/secret'].map((path) => modeOf(at(path)))
  const descriptors = openDescriptors()
  const refused = [
    ['link', 0o600, 'invalid_path'],
    ['dangling', 0o600, 'invalid_path'],
    ['way/secret', 0o600, 'invalid_path'],
    ['fifo', 0o600, 'invalid_path'],
    ['../x', 0o600, 'invalid_path'],
    ['.', 0o700, 'invalid_path'],
    ['missing', 0o600, 'not_found'],
    ['d/missing', 0o600, 'not_found'],
    ['d', 0o655, 'invalid_request'],
    ['d', 0o577, 'invalid_request'],
    ['fine', 0o477, 'invalid_request'],
    ['fine', 0o277, 'invalid_request'],
  ] as const
  for (const [entry, mode, expected] of refused)
    await assert.rejects(
      agent.setMode(request({ root: '/', files: ['fine', entry], mode })),
      code(expected),
      `${entry} ${mode.toString(8)}`,
    )
  assert.deepEqual(
    ['fine', 'd', 'link', 'fifo', 'outside/secret'].map((path) => modeOf(at(path))),
    before,
  )
  assert.deepEqual(await kindsIn(started), [])
  assert.deepEqual(openDescriptors(), descriptors)
})

test('a mount point is refused', { skip: withoutRoot() }, async (t) => {
  const { agent, at } = await startServer(t, { 'mounted/': '' })
  using _mounted = mount(at('mounted'), '-t', 'tmpfs', 'none')
  await assert.rejects(agent.setMode(request({ root: '/', files: ['mounted'], mode: 0o700 })), code('invalid_path'))
})

test('a folder keeps its setgid and sticky bits, a file loses all but the nine, and all names of a file show it', async (t) => {
  const { agent, at } = await startServer(t, { 'd/': '', suid: 'x' })
  chmodSync(at('d'), 0o3755)
  chmodSync(at('suid'), 0o6755)
  linkSync(at('suid'), at('linked'))
  const { data } = await agent.setMode(request({ root: '/', files: ['d', 'suid'], mode: 0o755 }))
  assert.deepEqual(
    data.map(({ mode }) => mode),
    ['3755', '0755'],
  )
  await agent.setMode(request({ root: '/', files: ['d'], mode: 0o700 }))
  assert.deepEqual([modeOf(at('d')), modeOf(at('linked'))], ['3700', '0755'])
})

test('Every entry is checked before any is changed, and when one cannot be changed after all, those before it are taken back.', async (t) => {
  for (const kind of ['a symlink', 'a pipe', 'a directory on the way', 'nothing']) {
    const started = await startServer(t, { first: 'f', 'd/x': 'x' })
    const { agent, at } = started
    const outside = makeTree(t, { x: 'secret' })
    meanwhile(started, () => {
      if (kind === 'a directory on the way') {
        renameSync(at('d'), at('e'))
        symlinkSync(outside, at('d'))
        return
      }
      rmSync(at('d/x'))
      if (kind === 'a symlink') symlinkSync(join(outside, 'x'), at('d/x'))
      if (kind === 'a pipe') execFileSync('mkfifo', [at('d/x')])
    })
    const descriptors = openDescriptors()
    const expected = kind === 'nothing' ? 'not_found' : 'invalid_path'
    await assert.rejects(agent.setMode(request({ root: '/', files: ['first', 'd/x'], mode: 0o755 })), code(expected))
    assert.deepEqual([modeOf(at('first')), modeOf(join(outside, 'x'))], ['0644', '0644'], kind)
    assert.deepEqual(await kindsIn(started), [], kind)
    assert.deepEqual(openDescriptors(), descriptors)
  }
})

test('a file that a game has saved anew meanwhile gets the mode; a folder in its place keeps what its owner needs', async (t) => {
  const started = await startServer(t, { x: 'old' })
  const { agent, at } = started
  meanwhile(started, () => {
    writeFileSync(at('new'), 'new')
    renameSync(at('new'), at('x'))
  })
  assert.equal((await agent.setMode(request({ root: '/', files: ['x'], mode: 0o600 }))).data[0]?.mode, '0600')
  meanwhile(started, () => {
    rmSync(at('x'))
    mkdirSync(at('x'), { mode: 0o755 })
  })
  await assert.rejects(
    agent.setMode(request({ root: '/', files: ['x'], mode: 0o640 })),
    (error) => isFailure(error, 'invalid_request') && /owner of a directory keeps/.test(error.detail),
  )
  assert.equal(modeOf(at('x')), '0755')
})

test('of many entries the first hundred are told, and all are counted', async (t) => {
  const names = Array.from({ length: 130 }, (_, index) => `f${index}`)
  const started = await startServer(t, Object.fromEntries(names.map((name) => [name, ''])))
  const { data } = await started.agent.setMode(request({ root: '/', files: names, mode: 0o600 }))
  assert.ok(data.length === 130 && data.every(({ mode }) => mode === '0600'))
  const [[, properties] = []] = await kindsIn(started)
  const { paths, count } = properties as { paths: string[]; count: number }
  assert.deepEqual([paths.length, count], [100, 130])
})

const UNPRIVILEGED = 54_321

test('without rights, what nobody can read is given its mode, and what belongs to others is refused', {
  skip: withoutRoot(),
}, async (t) => {
  const data = makeTree(t)
  const files = join(data, 'servers', serverId, 'files')
  fillTree(files, { locked: 'x', 'folder/': '', theirs: 'y' })
  chmodSync(join(files, 'locked'), 0)
  chmodSync(join(files, 'folder'), 0)
  execFileSync('chown', ['-R', `${UNPRIVILEGED}:${UNPRIVILEGED}`, data])
  execFileSync('chown', ['0:0', join(files, 'theirs')])
  const script = fileURLToPath(new URL('./mode.testing.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [script, data, serverId, 'theirs', 'folder'], {
    uid: UNPRIVILEGED,
    gid: UNPRIVILEGED,
    cwd: '/',
    env: {},
  })
  assert.equal(stdout, 'invalid_path\n0700 0700\n')
  assert.equal(modeOf(join(files, 'theirs')), '0644')
})

test('The next backup has the new mode', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf(serverId)
  fillTree(root, { 'run.sh': 'x', 'folder/quiet': 'y' })
  // Until then the backup reads everything again, and would see the mode anyway.
  await delay(1100)
  const first = await agent.create(serverId)
  const before = snapshot(root)
  await agent.files.setMode(request({ root: '/', files: ['run.sh', 'folder'], mode: 0o711 }))
  const after = snapshot(root)
  const second = await agent.create(serverId)
  assert.equal(second.storedBytes, 0, 'the content is the same')
  await agent.restore(serverId, first.backupId)
  assertSameTree(snapshot(root), before)
  await agent.restore(serverId, second.backupId)
  assertSameTree(snapshot(root), after)
})
