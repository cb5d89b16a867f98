// Kills the process that makes, restores, deletes, reclaims and scrubs backups, at random instants, and looks at what it
// left: every backup that was announced is there, verifies and restores byte for byte; the tree is the old one or the
// new one; the store needs no hand.
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { on, once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { assertSameTree, isSameTree, snapshot, startAgent, type Tree } from '../../src/agent/backups/backups.testing.ts'

interface World {
  dataDir: string
  key: string
  /** The tree that each announced backup holds. */
  backups: Map<string, Tree>
  /** Its deletion has begun: it may be there or not. */
  doubtful: Set<string>
  tree: Tree
  /** The tree that a restore was making when it was killed. */
  becoming: Tree | undefined
}

export async function run(rounds: number, seed = 1, say: (line: string) => void = () => {}): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'gamekeeper-faults-'))
  const key = seed % 2 ? '' : 'ab'.repeat(32)
  const world: World = { dataDir, key, backups: new Map(), doubtful: new Set(), tree: {}, becoming: undefined }
  const killed: Record<string, number> = {}
  try {
    for (let round = 0; round < rounds; round++) {
      const during = await killOnce(world, seed * 1000 + round)
      killed[during] = (killed[during] ?? 0) + 1
      await inspect(world, round % 5 === 4 || round === rounds - 1)
      say(`round ${round + 1} of ${rounds}: killed while ${during}; ${world.backups.size} backups whole`)
    }
    say(`killed ${JSON.stringify(killed)}`)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

/** What was under way when it was killed. */
async function killOnce(world: World, seed: number): Promise<string> {
  const script = new URL('./backups-child.ts', import.meta.url)
  const child = fork(script, [world.dataDir, String(seed), world.key])
  const root = join(world.dataDir, 'servers/srv_a/files')
  const lastOperation = 2 + (seed % 5)
  let operations = 0
  let during = 'starting'
  try {
    for await (const [message] of on(child, 'message')) {
      const { event, backupId = '' } = message as { event: string; backupId?: string }
      note(world, event, backupId, existsSync(root) ? snapshot(root) : {})
      during = event
      child.send('go on')
      if (event.endsWith('ing') && ++operations >= lastOperation) break
    }
    await delay((seed * 7919) % 120)
  } finally {
    child.kill('SIGKILL')
    if (child.signalCode === null && child.exitCode === null) await once(child, 'exit')
  }
  return during
}

function note(world: World, event: string, backupId: string, now: Tree): void {
  if (event === 'creating') world.tree = now
  if (event === 'created') world.backups.set(backupId, world.tree)
  if (event === 'deleting') world.doubtful.add(backupId)
  if (event === 'deleted') {
    world.backups.delete(backupId)
    world.doubtful.delete(backupId)
  }
  if (event === 'restoring') world.becoming = world.backups.get(backupId)
  if (event === 'restored') {
    assertSameTree(now, world.backups.get(backupId) ?? {})
    world.tree = now
    world.becoming = undefined
  }
}

/** As the service would after a restart: open the store, finish what was begun. */
async function inspect(world: World, isThorough: boolean): Promise<void> {
  const agent = await startAgent(world.dataDir, { key: world.key ? Buffer.from(world.key, 'hex') : null })
  try {
    inspectTree(world, snapshot(agent.filesOf('srv_a')))
    const there = new Set((await agent.backups.list({ serverId: 'srv_a' })).map(({ backupId }) => backupId))
    for (const backupId of world.backups.keys()) {
      if (!there.has(backupId)) {
        assert.ok(world.doubtful.has(backupId), `${backupId} was announced and is gone`)
        world.backups.delete(backupId)
      }
    }
    world.doubtful.clear()
    // Killed between becoming durable and being announced: it holds the tree as it was.
    for (const backupId of there) if (!world.backups.has(backupId)) world.backups.set(backupId, world.tree)
    assert.deepEqual((await agent.run({ kind: 'backups.scrub', share: 1 })).damage, [])
    const checked = isThorough ? [...world.backups] : [...world.backups].slice(-1)
    const target = agent.filesOf('srv_check')
    for (const [backupId, tree] of checked) {
      assert.deepEqual((await agent.run({ kind: 'backups.verify', backupId }, 'srv_a')).damage, [])
      await agent.restore('srv_check', backupId, { sourceServerId: 'srv_a' })
      assertSameTree(snapshot(target), tree)
    }
    rmSync(join(world.dataDir, 'servers/srv_check'), { recursive: true, force: true })
  } finally {
    await agent.stop()
  }
}

function inspectTree(world: World, now: Tree): void {
  if (world.becoming && isSameTree(now, world.becoming)) world.tree = now
  else assertSameTree(now, world.tree)
  world.becoming = undefined
}
