// `npm run faults -- offsite [rounds] [--seed S]`: a service that mirrors its backups to a bucket, with kills of the service and
// of the S3 server, and whatever else such a server does wrong, at random requests of backups, deletions, reclaims and
// recoveries. After each round everything that the service has said to be stored restores from the bucket alone.
// Every third seed has so many files that manifests have parts; every second one is encrypted.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { assertSameTree, snapshot } from '../../../src/agent/backups/backups.testing.ts'
import { changeTree } from '../backups-tree.ts'
import { createRandom } from '../history/random.ts'
import { chooseMishap } from './mishaps.ts'
import { promised, prove, recover, recoverInTrouble } from './proof.ts'
import {
  areMade,
  areStored,
  createWorld,
  emptyFolder,
  isMirrored,
  LIVE_PREFIX,
  look,
  passHours,
  untilBackups,
  untilKilled,
  type World,
  watchSending,
} from './world.ts'

/** More than this are deleted again. */
const BACKUPS_KEPT = 4
/** A kill may come in the middle of the backup itself. */
const KILL_WITHIN_MS = 400
const SEEDS = 1_000_000
const MANY = 1200

export async function troubleOffsite(rounds: number, say: (line: string) => void, args: string[] = []): Promise<void> {
  const { values } = parseArgs({ args, options: { seed: { type: 'string' } }, allowPositionals: true })
  const seed = Number(values.seed ?? Date.now() % SEEDS)
  say(`seed ${seed}`)
  const world = await createWorld(createRandom(seed), { isEncrypted: seed % 2 === 1, hasManyFiles: seed % 3 === 0 })
  try {
    for (let round = 1; round <= rounds; round++) {
      const told = await playRound(world, round)
      const proof = await prove(world)
      say(`round ${round} of ${rounds}: ${told}; ${proof}`)
    }
  } finally {
    await world.stop()
  }
}

async function playRound(world: World, round: number): Promise<string> {
  const { random } = world
  const isMachineLost = promised(world).length > 0 && random.chance(0.15)
  if (isMachineLost) await loseMachine(world, round)
  else passHours(world)
  const mishap = chooseMishap(world)
  const isSettled = random.chance(0.6)
  const isAtStart = random.chance(0.5)
  const settings: Record<string, string> = random.chance(0.3) ? { GAMEKEEPER_KEEP_LOCAL: '1MB' } : {}
  const watch = watchSending(world)
  if (isAtStart) mishap.arm()
  await untilKilled(world, async () => {
    await world.start(settings)
    await begin(world)
    if (!isAtStart) mishap.arm()
    await work(world, round)
    await untilBackups(world, (backups) => mishap.isOver || areStored(backups))
  })
  await mishap.end()
  // It may still be on its way out.
  if (world.isKilled) await world.kill()
  if (isSettled) await settle(world, settings)
  await world.kill()
  watch.assertNothingTwice()
  const about = [mishap.about, isAtStart ? 'from the start' : '', isMachineLost ? 'on a new machine' : '']
  return `${about.filter((part) => part !== '').join(', ')}${isSettled ? ', settled' : ''}`
}

/** What an earlier round has left unfinished ends before the files change. */
async function begin(world: World): Promise<void> {
  const { body: found } = await world.http.call('GET', '/servers')
  world.serverId = found.data[0]?.id ?? (await world.http.call('POST', '/servers', { name: 'Castle' })).body.id
  await untilBackups(world, areMade)
}

/** Once nothing is in the way, everything is sent, and what was deleted is removed. */
async function settle(world: World, settings: Record<string, string>): Promise<void> {
  if (world.isKilled) {
    await world.start(settings)
    await begin(world)
  }
  await untilBackups(world, (backups) => isMirrored(world, backups))
}

async function work(world: World, round: number): Promise<void> {
  const { random, http, serverId, deleted } = world
  const backups = await look(world)
  while (backups.length > BACKUPS_KEPT || (backups.length > 1 && random.chance(0.2))) {
    const [{ id, name } = { id: '', name: '' }] = backups.splice(random.int(backups.length), 1)
    deleted.add(name)
    await http.call('DELETE', `/backups/${serverId}/${id}`)
  }
  for (let count = random.chance(0.15) ? 0 : 1 + random.int(2); count > 0; count--) {
    changeTree(world.files(), (below) => random.int(below))
    if (world.hasManyFiles) changeMany(world)
    const name = `round ${round}, ${count}`
    world.trees.set(name, snapshot(world.files()))
    const { status, body } = await http.call('POST', `/backups/${serverId}`, { name })
    assert.equal(status, 202, JSON.stringify(body))
    if (random.chance(0.15)) {
      await delay(random.int(KILL_WITHIN_MS))
      await world.kill()
    }
    await untilBackups(world, areMade)
  }
}

/** All of them or none: mostly a manifest has nothing new of them, and names the parts of the one before. */
function changeMany({ random, files }: World): void {
  const folder = join(files(), 'many')
  if (existsSync(folder) && random.chance(0.7)) return
  mkdirSync(folder, { recursive: true })
  for (let index = 0; index < MANY; index++) writeFileSync(join(folder, `${index}`), `${random.int(SEEDS)}`)
}

/** The disk is gone, and with it what was not off-site. On another machine the service goes on from the bucket. */
async function loseMachine(world: World, round: number): Promise<void> {
  const { random } = world
  rmSync(world.dataDir, { recursive: true })
  world.dataDir = emptyFolder(world, `data-${round}`)
  if (random.chance(0.7)) await recoverInTrouble(world, LIVE_PREFIX, world.dataDir)
  assert.ok(await recover(world, LIVE_PREFIX, world.dataDir))
  await world.start()
  const backups = await look(world)
  for (const name of promised(world))
    assert.ok(
      backups.some((backup) => backup.name === name),
      name,
    )
  const { id, name } = random.pick(backups)
  const request = { mode: 'replace', safetyBackup: false }
  const { body: job } = await world.http.call('POST', `/backups/${world.serverId}/${id}/restore`, request)
  for (let status = 'queued'; status !== 'completed'; ) {
    assert.notEqual(status, 'failed')
    await delay(20)
    status = (await world.http.call('GET', `/servers/${world.serverId}/jobs/${job.id}`)).body.status
  }
  assertSameTree(snapshot(world.files()), world.trees.get(name) ?? {})
  await world.kill()
}
