import assert from 'node:assert/strict'
import {
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { HOLES_READ_MAX_BYTES, SPARSE_RATIO } from '../../contract/fixed-limits.ts'
import { createHoleBudget } from '../files/space/hole-budget.ts'
import { assertSameTree, snapshot, testAgent } from './backups.testing.ts'

const MIB = 1024 ** 2

function pathOf(fd: string): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return undefined
  }
}

it('backs a sparse file up and restores its holes as holes', async (t) => {
  const agent = await testAgent(t)
  const files = agent.filesOf('srv_a')
  const fd = openSync(join(files, 'sparse'), 'w')
  writeSync(fd, 'first', 0)
  writeSync(fd, 'last', 64 * MIB)
  const { backupId, warnings } = await agent.create('srv_a')
  assert.deepEqual(warnings, [])
  const copy = agent.filesOf('srv_b')
  await agent.run(
    {
      kind: 'backups.restore',
      jobId: 'job_sparse',
      backupId,
      sourceServerId: 'srv_a',
      mode: 'replace',
      paths: null,
      safetyBackupId: null,
    },
    'srv_b',
  )
  assertSameTree(snapshot(copy), snapshot(files))
  assert.ok(lstatSync(join(copy, 'sparse')).blocks * 512 < MIB)
})

it('reads holes as long as there is data beside them, and beyond that up to a limit for all files together', () => {
  const holes = createHoleBudget()
  const blocks = BigInt(HOLES_READ_MAX_BYTES / 512)
  const size = BigInt(HOLES_READ_MAX_BYTES)
  assert.equal(holes.take({ size: size * BigInt(SPARSE_RATIO), blocks }), true)
  assert.equal(holes.take({ size: size - 10n, blocks: 0n }), true)
  assert.equal(holes.take({ size: 11n, blocks: 0n }), false)
  assert.equal(holes.take({ size: 10n, blocks: 0n }), true)
  assert.equal(holes.take({ size: size * BigInt(SPARSE_RATIO), blocks }), true)
})

it('lets a small backup of one server pass the comparisons of large files of another', async (t) => {
  const agent = await testAgent(t)
  const hole = join(agent.filesOf('srv_a'), 'hole')
  writeFileSync(hole, 'here')
  truncateSync(hole, 1024 * MIB)
  const { backupId } = await agent.create('srv_a')
  utimesSync(hole, 0, 0)
  writeFileSync(join(agent.filesOf('srv_b'), 'level'), 'kept')
  const left = new AbortController()
  const request = { serverId: 'srv_a', from: backupId, to: null, limit: 1, after: null }
  let ended = 0
  const compares = [1, 2, 3, 4].map(async () => {
    try {
      return await agent.backups.compare(request, left.signal)
    } finally {
      ended++
    }
  })
  const open = () => readdirSync('/proc/self/fd').filter((fd) => pathOf(fd) === hole).length
  while (open() < compares.length) await nextTurn()
  const passed = agent.create('srv_b').then(() => ended)
  try {
    assert.equal(await passed, 0, 'comparisons that were over before the backup')
  } finally {
    left.abort()
    await Promise.allSettled(compares)
  }
  for (const end of await Promise.allSettled(compares))
    assert.equal(end.status === 'rejected' && end.reason.name, 'AbortError')
})
