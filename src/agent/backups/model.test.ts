// Random sequences of what people do, against a model that is nothing but whole trees in memory.
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import fc from 'fast-check'
import { changeTree } from '../../../test/faults/backups-tree.ts'
import { newId } from '../../kit/ids.ts'
import {
  assertSameTree,
  isSameTree,
  snapshot,
  startAgent,
  type TestAgent,
  type Tree,
  temporaryFolder,
} from './backups.testing.ts'
import { type Doom, type DoomedWork, killDuring } from './mishaps/killed.testing.ts'

interface Kept {
  serverId: string
  backupId: string
  tree: Tree
  isLocked: boolean
}

interface World {
  folder: string
  agent: TestAgent
  /** Oldest first. */
  backups: Kept[]
}

const SERVERS = ['srv_a', 'srv_b']
const server = fc.constantFrom(...SERVERS)
const which = fc.nat({ max: 1000 })
const kind = <K extends string>(name: K) => fc.constant(name)
/** Early, in the middle or not at all; by the clock or where it hurts. */
const doom = fc.oneof(
  fc.record({ afterMs: fc.nat({ max: 40 }), atRename: fc.constant(0) }),
  fc.record({ afterMs: fc.constant(2000), atRename: fc.integer({ min: 1, max: 12 }) }),
)

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: kind('change'), server, seed: which }) },
  { weight: 3, arbitrary: fc.record({ kind: kind('create'), server, isLocked: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('restore'), server, which, merge: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('delete'), which }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('lock'), which, isLocked: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('expire'), server }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('reclaim') }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('reopen') }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('crash in create'), server, doom }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('crash in restore'), server, which, doom }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('crash in delete'), which, doom }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('crash in reclaim'), doom }) },
)

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
type StepOf<K extends Step['kind']> = Extract<Step, { kind: K }>

/** What each step does, to the agent and to the model. */
const STEPS: { [K in Step['kind']]: (world: World, step: StepOf<K>) => Promise<void> } = {
  async change({ agent }, step) {
    changeTree(agent.filesOf(step.server), seeded(step.seed))
  },

  async create({ agent, backups }, { server: serverId, isLocked }) {
    const tree = snapshot(agent.filesOf(serverId))
    const { backupId } = await agent.create(serverId, { isLocked })
    backups.push({ serverId, backupId, tree, isLocked })
  },

  async restore({ agent, backups }, step) {
    const chosen = choose(backups, step.which)
    if (!chosen) return
    const root = agent.filesOf(step.server)
    const before = snapshot(root)
    const mode = step.merge ? 'merge' : 'replace'
    await agent.restore(step.server, chosen.backupId, { sourceServerId: chosen.serverId, mode })
    const after = snapshot(root)
    if (mode === 'replace') assertSameTree(after, chosen.tree)
    else
      for (const path of [...Object.keys(chosen.tree), ...outside(before, chosen.tree)]) assert.ok(path in after, path)
  },

  async delete({ agent, backups }, step) {
    const chosen = choose(backups, step.which)
    if (!chosen) return
    await agent.backups.remove(chosen)
    forget(backups, chosen)
  },

  async lock({ agent, backups }, { which, isLocked }) {
    const chosen = choose(backups, which)
    if (!chosen) return
    await agent.backups.setLock({ serverId: chosen.serverId, backupId: chosen.backupId, isLocked })
    chosen.isLocked = isLocked
  },

  /** As retention after a recovery would, which has only the word of the store for what is locked: the newest stays. */
  async expire({ agent, backups }, { server: serverId }) {
    const listed = (await agent.backups.list({ serverId })).sort((a, b) => (a.backupId < b.backupId ? 1 : -1))
    for (const { backupId, backup } of listed.slice(1))
      if (!backup?.isLocked) await agent.backups.remove({ serverId, backupId })
    const own = backups.filter((kept) => kept.serverId === serverId)
    for (const kept of own.slice(0, -1)) if (!kept.isLocked) forget(backups, kept)
  },

  async reclaim({ agent }) {
    await agent.run({ kind: 'backups.reclaim' })
  },

  async reopen(world) {
    await world.agent.stop()
    world.agent = await startAgent(world.folder)
  },

  async 'crash in create'(world, { server: serverId, doom }) {
    const tree = snapshot(world.agent.filesOf(serverId))
    const backupId = newId('bkp')
    const request = { name: 'doomed', createdAt: Date.now(), ignored: '', isLocked: true }
    const isDone = await crash(world, serverId, { kind: 'backups.create', backupId, ...request }, doom)
    const isThere = (await world.agent.backups.list({ serverId })).some((stored) => stored.backupId === backupId)
    assert.ok(isThere || !isDone, 'a backup that was announced is gone')
    if (isThere) world.backups.push({ serverId, backupId, tree, isLocked: true })
    assertSameTree(snapshot(world.agent.filesOf(serverId)), tree)
  },

  async 'crash in restore'(world, step) {
    const chosen = choose(world.backups, step.which)
    if (!chosen) return
    const before = snapshot(world.agent.filesOf(step.server))
    const { backupId, serverId: sourceServerId, tree } = chosen
    const work = {
      kind: 'backups.restore',
      jobId: newId('job'),
      backupId,
      sourceServerId,
      mode: 'replace',
      paths: null,
      safetyBackupId: null,
    } as const
    const isDone = await crash(world, step.server, work, step.doom)
    const after = snapshot(world.agent.filesOf(step.server))
    assertSameTree(after, isDone || isSameTree(after, tree) ? tree : before)
  },

  async 'crash in delete'(world, step) {
    const chosen = choose(world.backups, step.which)
    if (!chosen) return
    const { serverId, backupId } = chosen
    const isDone = await crash(world, serverId, { kind: 'remove', backupId }, step.doom)
    const left = (await world.agent.backups.list({ serverId })).find((stored) => stored.backupId === backupId)
    assert.ok(!left || !isDone, 'a backup that was deleted is back')
    if (left) chosen.isLocked = left.backup?.isLocked ?? true
    else forget(world.backups, chosen)
  },

  async 'crash in reclaim'(world, { doom }) {
    await crash(world, 'srv_none', { kind: 'backups.reclaim' }, doom)
  },
}

const choose = (backups: Kept[], which: number) => backups[which % Math.max(1, backups.length)]
const forget = (backups: Kept[], kept: Kept) => void backups.splice(backups.indexOf(kept), 1)

/** The work is begun by a process that is killed, and the agent is opened again as after a restart. */
async function crash(world: World, serverId: string, work: DoomedWork, doom: Doom): Promise<boolean> {
  await world.agent.stop()
  const isDone = await killDuring(world.folder, serverId, work, doom)
  world.agent = await startAgent(world.folder)
  return isDone
}

async function take<K extends Step['kind']>(world: World, step: StepOf<K> & { kind: K }): Promise<void> {
  await STEPS[step.kind](world, step)
  const listed = await world.agent.backups.list({ serverId: null, isThorough: true })
  const said = listed.map(({ backupId, backup, damage }) => [backupId, backup?.isLocked, damage])
  assert.deepEqual(said.sort(), world.backups.map(({ backupId, isLocked }) => [backupId, isLocked, null]).sort())
}

/** Paths that a merge must leave: not in the backup, and not beneath something that the backup has as a file. */
function outside(before: Tree, tree: Tree): string[] {
  const isBeneathFile = (path: string) => {
    for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
      const above = tree[path.slice(0, at)]
      if (above && !above.is.startsWith('directory')) return true
    }
    return false
  }
  return Object.keys(before).filter((path) => !(path in tree) && !isBeneathFile(path))
}

function seeded(seed: number): (below: number) => number {
  let state = seed + 1
  return (below) => {
    state = (state * 48_271) % 2_147_483_647
    return state % below
  }
}

it('At no point is a block deleted of which a finished backup has no other copy that is durable and indexed.', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 25 }), async (steps) => {
      const folder = temporaryFolder(t)
      const world: World = { folder, agent: await startAgent(folder), backups: [] }
      try {
        for (const next of steps) await take(world, next)
        const { agent, backups } = world
        const target = agent.filesOf('srv_target')
        for (const { serverId, backupId, tree } of backups) {
          await agent.restore('srv_target', backupId, { sourceServerId: serverId })
          assertSameTree(snapshot(target), tree)
        }
        assert.deepEqual((await agent.run({ kind: 'backups.scrub', share: 1 })).damage, [])
      } finally {
        await world.agent.stop()
        rmSync(join(folder, 'servers'), { recursive: true, force: true })
      }
    }),
    { numRuns: 12 },
  )
})
