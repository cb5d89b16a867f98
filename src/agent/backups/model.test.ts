// Random sequences of what people do, against a model that is nothing but whole trees in memory.
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import fc from 'fast-check'
import { changeTree } from '../../../test/faults/backups-tree.ts'
import { assertSameTree, snapshot, startAgent, type TestAgent, type Tree, temporaryFolder } from './backups.testing.ts'

interface World {
  folder: string
  agent: TestAgent
  backups: { serverId: string; backupId: string; tree: Tree }[]
}

const SERVERS = ['srv_a', 'srv_b']
const server = fc.constantFrom(...SERVERS)
const which = fc.nat({ max: 1000 })

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('change' as const), server, seed: which }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('create' as const), server }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('restore' as const), server, which, merge: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete' as const), which }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reclaim' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reopen' as const) }) },
)

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

async function take(world: World, step: Step): Promise<void> {
  const { agent, backups } = world
  const chosen = 'which' in step ? backups[step.which % Math.max(1, backups.length)] : undefined
  if (step.kind === 'change') changeTree(agent.filesOf(step.server), seeded(step.seed))
  else if (step.kind === 'create') {
    const tree = snapshot(agent.filesOf(step.server))
    const { backupId } = await agent.create(step.server)
    backups.push({ serverId: step.server, backupId, tree })
  } else if (step.kind === 'restore' && chosen) {
    const root = agent.filesOf(step.server)
    const before = snapshot(root)
    const mode = step.merge ? 'merge' : 'replace'
    await agent.restore(step.server, chosen.backupId, { sourceServerId: chosen.serverId, mode })
    const after = snapshot(root)
    if (mode === 'replace') assertSameTree(after, chosen.tree)
    else
      for (const path of [...Object.keys(chosen.tree), ...outside(before, chosen.tree)]) assert.ok(path in after, path)
  } else if (step.kind === 'delete' && chosen) {
    await agent.backups.remove(chosen)
    backups.splice(backups.indexOf(chosen), 1)
  } else if (step.kind === 'reclaim') await agent.run({ kind: 'backups.reclaim' })
  else if (step.kind === 'reopen') {
    await agent.stop()
    world.agent = await startAgent(world.folder)
  }
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

it('whatever is done in whatever order, every backup is the tree that it was made of', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 25 }), async (steps) => {
      const folder = temporaryFolder(t)
      const world: World = { folder, agent: await startAgent(folder), backups: [] }
      try {
        for (const next of steps) await take(world, next)
        const { agent, backups } = world
        const listed = (await agent.backups.list({ serverId: null })).map(({ backupId }) => backupId)
        assert.deepEqual(listed.sort(), backups.map(({ backupId }) => backupId).sort())
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
