// What a bucket is worth by itself: a new data directory, `backup recover --store`, restores, and a comparison bit for bit.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { assertSameTree, snapshot, startAgent } from '../../../src/agent/backups/backups.testing.ts'
import { openBlobStore } from '../../../src/blobs/open-store.ts'
import { s3Address } from '../../../src/blobs/s3/address.ts'
import { namesIn } from '../../../src/blobs/store.testing.ts'
import { ranOf } from '../../support/ran.ts'
import { startBinary } from '../../support/terminal.ts'
import { chooseMishap } from './mishaps.ts'
import { emptyFolder, liveDir, type World } from './world.ts'

/** Of which it was said that they are in the bucket, and whose deletion nobody has asked for. */
export const promised = ({ stored, deleted }: World) => [...stored].filter((name) => !deleted.has(name))

/**
 * Of a copy of the bucket, since whoever recovers from one takes it over. The service does not run. Everything that was said
 * to be stored is there, and everything that is there is what it was.
 */
export async function prove(world: World): Promise<string> {
  const [prefix, dataDir] = ['proof', emptyFolder(world, 'proof')]
  const copy = join(world.gateway.dir, prefix)
  rmSync(copy, { recursive: true, force: true })
  if (!existsSync(liveDir(world))) {
    assert.deepEqual(promised(world), [])
    return 'nothing was sent yet'
  }
  // With the attributes, by which the server knows checksums.
  execFileSync('cp', ['-a', '--reflink=auto', liveDir(world), copy])
  if (world.random.chance(0.5)) await recoverInTrouble(world, prefix, dataDir)
  if (!(await recover(world, prefix, dataDir))) return 'no store was sent yet'
  const count = await restoreAll(world, prefix, dataDir)
  rmSync(dataDir, { recursive: true })
  const parts = namesIn(liveDir(world), 'parts').length
  return `${count} restored, ${promised(world).length} promised${parts > 0 ? `, with ${parts} parts` : ''}`
}

/** Whatever comes of it, it can be done again. */
export async function recoverInTrouble(world: World, prefix: string, dataDir: string): Promise<void> {
  const child = startRecover(world, prefix, dataDir)
  const kill = async () => void child.kill('SIGKILL')
  const mishap = chooseMishap({ ...world, kill })
  mishap.arm()
  const exited = once(child, 'exit')
  // Also one that waits for a bucket that stalls comes to an end.
  const timer = setTimeout(() => child.kill('SIGKILL'), 5000)
  await exited
  clearTimeout(timer)
  await mishap.end()
}

/** False where the bucket has no store, which nobody has promised then. */
export async function recover(world: World, prefix: string, dataDir: string): Promise<boolean> {
  const { stdout, stderr } = await ranOf(startRecover(world, prefix, dataDir))
  // It tells of manifests that were not kept whole, and fails for that. Nobody was told that those are stored.
  if (stdout !== '' && JSON.parse(stdout).recovered) return true
  assert.deepEqual(promised(world), [], `${stdout}${stderr}`)
  assert.match(JSON.parse(stderr).error.code, /^(?:no_store|unknown_format)$/, stderr)
  return false
}

function startRecover(world: World, prefix: string, dataDir: string) {
  const env = world.envOf(prefix, dataDir)
  const store = env.GAMEKEEPER_OFFSITE ?? ''
  return startBinary(['backup', 'recover', '--store', store, '--data', dataDir, '--json'], { env, cwd: world.folder })
}

async function restoreAll(world: World, prefix: string, dataDir: string): Promise<number> {
  const { gateway, proxy, key, trees } = world
  const address = s3Address(gateway.place(prefix, proxy.url), gateway.keys)
  const agent = await startAgent(dataDir, { key, offsite: () => openBlobStore(address, { clear: false }) })
  try {
    const found = await agent.backups.list({ serverId: null, isThorough: true })
    for (const { serverId, backupId, backup, damage } of found) {
      assert.equal(damage, null)
      const tree = trees.get(backup?.name ?? '')
      assert.ok(tree, `nobody has made ${JSON.stringify(backup)}`)
      const root = agent.filesOf(serverId)
      await agent.restore(serverId, backupId)
      assertSameTree(snapshot(root), tree)
    }
    const names = new Set(found.map(({ backup }) => backup?.name))
    assert.deepEqual(
      promised(world).filter((name) => !names.has(name)),
      [],
      'said to be stored, and not in the bucket',
    )
    return found.length
  } finally {
    await agent.stop()
  }
}
