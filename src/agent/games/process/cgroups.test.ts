// Which control groups a game gets. Version 2 on folders that look like the kernel's, since machines that run tests have either.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { makeGroups, removeGroups } from './cgroups.ts'

const NO_LIMITS = { memoryBytes: null, cpuPercent: null, processes: null }
const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-cgroups-'))
after(() => rmSync(folder, { recursive: true }))

/** A mount of version 2 with the group of the service in it. */
function unified(own: string, given: Record<string, string>) {
  const mount = mkdtempSync(join(folder, 'v2-'))
  mkdirSync(join(mount, own), { recursive: true })
  for (let at = join(mount, own); at !== dirname(mount); at = dirname(at)) {
    writeFileSync(join(at, 'cgroup.procs'), '')
    writeFileSync(join(at, 'cgroup.controllers'), 'cpu io memory pids\n')
    writeFileSync(join(at, 'cgroup.subtree_control'), given[at.slice(mount.length)] ?? '')
  }
  return { mount, groups: { text: `0::${own}\n`, mounts: { v1: new Map(), v2: mount } } }
}
const read = (...path: string[]) => readFileSync(join(...path), 'utf8')

test('under the shipped unit games have groups of their own beside the service, which weighs more', () => {
  const unit = '/system.slice/gamekeeper.service'
  const { mount, groups } = unified(`${unit}/gamekeeper`, { '/system.slice': 'memory pids\n' })
  const made = makeGroups('run_1', { ...NO_LIMITS, memoryBytes: 4096, processes: 7 }, groups)
  assert.deepEqual([...made.controllers].sort(), ['cpu', 'memory', 'pids'])
  const game = join(mount, unit, 'gamekeeper-run_1')
  assert.deepEqual(made.folders, [{ folder: game, leaveTo: join(mount, unit, 'gamekeeper') }])
  assert.deepEqual([read(game, 'memory.max'), read(game, 'pids.max'), read(game, 'cpu.weight')], ['4096', '7', '100'])
  assert.equal(read(mount, unit, 'gamekeeper', 'cpu.weight'), '1000')
  assert.equal(
    read(mount, '/system.slice/cgroup.subtree_control'),
    'memory pids\n',
    "nothing is written into others' groups",
  )
})

test('where the group above may not be used the next is tried, and one of each kind is made', () => {
  const { mount, groups } = unified('/a/b', { '/a': 'memory pids', '/a/b': 'memory pids' })
  // As one that we may not make.
  writeFileSync(join(mount, 'a', 'gamekeeper-run_1'), '')
  assert.deepEqual(
    makeGroups('run_1', NO_LIMITS, groups).folders.map((each) => each.folder),
    [join(mount, 'a/b/gamekeeper-run_1')],
  )
  assert.deepEqual(
    makeGroups('run_2', NO_LIMITS, groups).folders.map((each) => each.folder),
    [join(mount, 'a/gamekeeper-run_2')],
  )
})

test('with groups of version 1 every game weighs the same, and less than the service', async (context) => {
  const { folders, controllers } = makeGroups(`run_${process.pid}`, NO_LIMITS)
  try {
    const cpu = folders.find((each) => existsSync(join(each.folder, 'cpu.shares')))
    if (!controllers.has('cpu') || !cpu) return context.skip('there are none here')
    assert.equal(read(cpu.folder, 'cpu.shares').trim(), '256')
    assert.ok(Number(read(cpu.leaveTo, 'cpu.shares')) > 256)
  } finally {
    await removeGroups(folders)
  }
})
