// What the tests of this folder share: an agent's backups, a directory in the place of a bucket, and what can go wrong there.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { openLocalStore } from '../../blobs/local.ts'
import { createFaultyStore, type Faults, namesIn } from '../../blobs/store.testing.ts'
import type { MirrorReport, OffsiteWork } from '../../contract/agent/agent-offsite.ts'
import type { TaskProgress } from '../../contract/agent.ts'
import {
  assertSameTree,
  snapshot,
  startAgent,
  type TestAgent,
  type Tree,
  temporaryFolder,
  testAgent,
} from '../backups/backups.testing.ts'
import { layout } from '../layout.ts'
import { createAgentOffsite, type MirrorTarget, type OffsiteOfAgent } from './index.ts'

export interface MirrorOptions extends Partial<MirrorTarget> {
  /** A place that is there already. */
  dir?: string
  /** One of its own by default. */
  agent?: TestAgent
  now?: () => number
}

export interface TestMirror {
  agent: TestAgent
  /** In the place of a bucket. */
  dir: string
  faults: Faults
  offsite: OffsiteOfAgent
  /** As a process that is started anew has it. */
  restart(): void
  run(work?: Partial<OffsiteWork>, signal?: AbortSignal): Promise<MirrorReport>
  readonly progress: Partial<TaskProgress>
  /** A backup, with the tree that it holds. */
  backup(serverId: string): Promise<{ backupId: string; tree: Tree }>
}

export async function testMirror(t: TestContext, options: MirrorOptions = {}): Promise<TestMirror> {
  const { dir = join(temporaryFolder(t), 'bucket'), now = Date.now, agent: given, ...more } = options
  const agent = given ?? (await testAgent(t, { blockHash: 'sha-256' }))
  const faults: Faults = {}
  const target: MirrorTarget = {
    place: 'the bucket of a test',
    open: async ({ clear }) => createFaultyStore(await openLocalStore(dir, { clear }), faults),
    describe: (error) => (error instanceof Error ? error.message : String(error)),
    bytesPerSecond: null,
    isAppendOnly: false,
    ...more,
  }
  const start = () =>
    createAgentOffsite({ layout: layout(agent.dataDir), repository: agent.backups.repository, target, now })
  const mirror = {
    agent,
    dir,
    faults,
    offsite: start(),
    progress: {},
    restart() {
      mirror.offsite = start()
    },
    run(work: Partial<OffsiteWork> = {}, signal: AbortSignal = new AbortController().signal) {
      const report = (progress: Partial<TaskProgress>) => void Object.assign(mirror.progress, progress)
      const context = { taskId: 'job_mirror', serverId: '', signal, report }
      const wanted = { isThorough: false, deletedBackups: [], confirmedBytes: null, ...work }
      return mirror.offsite.handlers['backups.mirror']({ ...wanted, kind: 'backups.mirror' }, context)
    },
    async backup(serverId: string) {
      const tree = snapshot(agent.filesOf(serverId))
      const { backupId } = await agent.create(serverId)
      return { backupId, tree }
    },
  }
  return mirror
}

/** Every backup of the mirror, opened as a store by itself: it has the tree that it was made of, bit for bit. */
export async function assertRestorable(
  t: TestContext,
  dir: string,
  serverId: string,
  trees: ReadonlyMap<string, Tree>,
  expected?: readonly string[],
): Promise<void> {
  const there = namesIn(dir, `manifests/${serverId}`)
  if (expected) assert.deepEqual(there, [...expected].sort())
  if (there.length === 0) return
  const dataDir = temporaryFolder(t)
  cpSync(dir, join(dataDir, 'backups'), { recursive: true })
  const alone = await startAgent(dataDir)
  try {
    const root = alone.filesOf(serverId)
    for (const backupId of there) {
      await alone.restore(serverId, backupId)
      assertSameTree(snapshot(root), trees.get(backupId) ?? {})
    }
  } finally {
    await alone.stop()
  }
}

/** Whose backups they are. */
export const SERVER = 'srv_a'

/**
 * From what is there now, a run that is killed before each thing that it would write or remove in turn. `check` what it has left
 * each time. Answers how many of them there were.
 */
export async function killEverywhere(
  t: TestContext,
  mirror: TestMirror,
  deletedBackups: string[],
  check: () => Promise<void>,
): Promise<number> {
  const { dir, faults } = mirror
  const before = join(temporaryFolder(t), 'before')
  mkdirSync(dir, { recursive: true })
  cpSync(dir, before, { recursive: true })
  // What the data directory knows of it is set back as well: otherwise it would be an older state of the place.
  const record = layout(mirror.agent.dataDir).mirror
  const known = existsSync(record) ? readFileSync(record) : undefined
  for (let calls = 1; ; calls++) {
    rmSync(dir, { recursive: true })
    cpSync(before, dir, { recursive: true })
    if (known) writeFileSync(record, known)
    else rmSync(record, { force: true })
    let made = 0
    faults.before = (call) => {
      if (['put', 'commit', 'delete'].includes(call) && ++made >= calls) throw new Error('killed')
    }
    mirror.restart()
    const isDone = await mirror.run({ isThorough: true, deletedBackups }).then(
      () => true,
      () => false,
    )
    await check()
    if (isDone) return calls - 1
  }
}

/** Files that no other backup shares. */
export function change({ agent }: TestMirror, bytes = 200_000): void {
  const root = agent.filesOf(SERVER)
  mkdirSync(join(root, 'world'), { recursive: true })
  writeFileSync(join(root, 'world/region'), randomBytes(bytes))
  writeFileSync(join(root, 'level.dat'), `day ${Math.random()}`)
}

export async function backups(mirror: TestMirror, count: number): Promise<Map<string, Tree>> {
  const trees = new Map<string, Tree>()
  for (let i = 0; i < count; i++) {
    change(mirror)
    const { backupId, tree } = await mirror.backup(SERVER)
    trees.set(backupId, tree)
  }
  return trees
}

export async function remove({ agent }: TestMirror, ...ids: string[]): Promise<void> {
  for (const backupId of ids) await agent.backups.remove({ serverId: SERVER, backupId })
  await agent.run({ kind: 'backups.reclaim' })
}
