// A tree of which there is a backup, and how to see what the next one has looked at and what it holds.
import assert from 'node:assert/strict'
import fs, { lstatSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { newId } from '../../../kit/ids.ts'
import { assertSameTree, snapshot, type TestAgent, type Tree, testAgent } from '../backups.testing.ts'

export const SERVER = 'srv_a'
/** By then all that was just written counts as settled. */
const LATER_MS = 100_000
/** The one directory that every backup lists. */
export const TOP = 1

export interface Scene {
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
export async function scene(t: TestContext, options: Parameters<typeof testAgent>[1] = {}): Promise<Scene> {
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
export function untilLater({ dataDir }: TestAgent): void {
  const probe = join(dataDir, 'probe')
  const changedAt = () => {
    writeFileSync(probe, '')
    return lstatSync(probe, { bigint: true }).ctimeNs
  }
  const before = changedAt()
  while (changedAt() === before);
}

/** How often a directory was listed meanwhile. */
export async function listings(t: TestContext, work: () => Promise<unknown>): Promise<number> {
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

export const directoriesIn = (root: string) =>
  Object.values(snapshot(root)).filter(({ is }) => is.startsWith('directory')).length

export async function restored(agent: TestAgent, backupId: string): Promise<Tree> {
  const targetId = newId('srv')
  const target = agent.filesOf(targetId)
  await agent.restore(targetId, backupId, { sourceServerId: SERVER })
  return snapshot(target)
}

/** A backup that says what is there, in what it counts and in what it brings back. */
export async function assertBackedUp({ agent, root }: Omit<Scene, 'at'>): Promise<string> {
  const tree = snapshot(root)
  const { backupId, fileCount, directoryCount, symlinkCount } = await agent.create(SERVER)
  assertSameTree(await restored(agent, backupId), tree)
  const kinds = Object.values(tree).map(({ is }) => is.split(' ')[0])
  const count = (kind: string) => kinds.filter((one) => one === kind).length
  assert.deepEqual([fileCount, directoryCount, symlinkCount], [count('file'), count('directory'), count('link')])
  untilLater(agent)
  return backupId
}
