// Whatever fails for want of descriptors leaves none open, loses nothing of a backup or of a server, and can be done again.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { withoutImmutable } from '../../../../test/support/immutable.ts'
import type { RestoreOutcome } from '../../../contract/agent/agent-backups.ts'
import { newId } from '../../../kit/ids.ts'
import { atEveryShortage, cannotRunOut } from '../../files/few-descriptors.testing.ts'
import { snapshot, type TestAgent, testAgent } from '../backups.testing.ts'
import { SERVER, stopRestore } from '../restore/finish.testing.ts'

const { signal } = new AbortController()
const cannotStop = cannotRunOut || withoutImmutable()

const promise = (name: string, run: (t: TestContext) => Promise<void>) =>
  test(name, { skip: cannotRunOut, timeout: 120_000 }, run)

/** A small file, one that is opened before it is read, and an empty folder. */
function fillServer(root: string): void {
  for (const name of readdirSync(root)) rmSync(join(root, name), { recursive: true })
  mkdirSync(join(root, 'world/empty'), { recursive: true })
  writeFileSync(join(root, 'world/small'), randomBytes(1000))
  writeFileSync(join(root, 'large'), randomBytes(1_100_000))
}

const contentsOf = (root: string) =>
  Object.fromEntries(Object.entries(snapshot(root)).map(([path, { is }]) => [path, is]))

/** How many backups the server has, and whether each is whole. */
async function backupsOf(agent: TestAgent, serverId: string) {
  const seen: string[] = []
  for (const { backupId, backup } of await agent.backups.list({ serverId })) {
    const { damage } = await agent.run({ kind: 'backups.verify', backupId, isOffsite: false }, serverId)
    assert.deepEqual([damage, backup?.warnings], [[], []])
    seen.push(`${backup?.fileCount} files, ${backup?.directoryCount} directories`)
  }
  return { ...seen.sort() }
}

/** What was not there for want of a descriptor is not damage. */
async function assertSound(agent: TestAgent): Promise<void> {
  assert.deepEqual((await agent.run({ kind: 'backups.scrub', share: 1 })).damage, [])
  assert.deepEqual((await agent.backups.store()).damagedBlobs, [])
}

promise('a first backup and one after changes are made whole, or not at all', async (t) => {
  const agent = await testAgent(t)
  for (const isFirst of [true, false]) {
    let serverId = ''
    let backupId = ''
    await atEveryShortage({
      async reset() {
        serverId = newId('srv')
        backupId = newId('bkp')
        const root = agent.filesOf(serverId)
        fillServer(root)
        if (isFirst) return
        await agent.create(serverId)
        writeFileSync(join(root, 'large'), randomBytes(10), { flag: 'r+' })
        writeFileSync(join(root, 'world/new'), randomBytes(10))
      },
      look: () => backupsOf(agent, serverId),
      work: () => agent.create(serverId, { backupId }),
    })
    const root = agent.filesOf(serverId)
    const tree = contentsOf(root)
    fillServer(root)
    await agent.restore(serverId, backupId)
    assert.deepEqual(contentsOf(root), tree)
  }
  await assertSound(agent)
})

for (const what of ['over what is there', 'into an empty server'])
  promise(`a restore ${what} is done or not, and once it has begun waits for descriptors`, async (t) => {
    const agent = await testAgent(t)
    const source = agent.filesOf('srv_a')
    fillServer(source)
    const { backupId } = await agent.create('srv_a')
    let serverId = ''
    await atEveryShortage({
      async reset() {
        serverId = newId('srv')
        const root = agent.filesOf(serverId)
        if (what === 'into an empty server') return
        mkdirSync(join(root, 'world'))
        for (const name of ['world/small', 'world/newer']) writeFileSync(join(root, name), 'newer')
      },
      look: () => contentsOf(agent.filesOf(serverId)),
      work: () => agent.restore(serverId, backupId, { sourceServerId: 'srv_a' }),
      passesOnceAwaited: true,
      ...(what === 'into an empty server' ? { shortages: ['at once'] } : {}),
    })
    await assertSound(agent)
  })

for (const direction of ['forward', 'back'] as const)
  test(`a restore that has stopped goes ${direction}, and says how it ended`, {
    skip: cannotStop,
    timeout: 120_000,
  }, async (t) => {
    const agent = await testAgent(t)
    const root = agent.filesOf(SERVER)
    let jobId = ''
    let expected: RestoreOutcome | undefined
    await atEveryShortage({
      async reset() {
        // After everything is placed, in whatever order it was staged.
        ;({ jobId } = await stopRestore(agent, 'keep'))
      },
      look: () => contentsOf(root),
      async work() {
        const outcome = await agent.run({ kind: 'backups.finishRestore', jobId, direction }, SERVER)
        expected ??= outcome
        assert.deepEqual(outcome, expected)
        assert.equal(outcome.report?.filesRestored, 4)
      },
      passesOnceAwaited: true,
    })
  })

promise('a backup is downloaded, read, listed and verified whole, or not answered', async (t) => {
  const agent = await testAgent(t)
  fillServer(agent.filesOf('srv_a'))
  const { backupId } = await agent.create('srv_a')
  const name = { serverId: 'srv_a', backupId }
  const bytesOf = async (stream: Readable) => Buffer.concat(await stream.toArray()).length
  const WAYS: Record<string, () => Promise<unknown>> = {
    tar: async () => bytesOf((await agent.backups.download({ ...name, format: 'tar', signal })).stream),
    zip: async () => bytesOf((await agent.backups.download({ ...name, format: 'zip', signal })).stream),
    file: async () => bytesOf((await agent.backups.readFile({ ...name, path: '/large' })).stream),
    list: async () => (await agent.backups.browse({ ...name, path: '/world', limit: 10, after: null })).entries.length,
    compare: () =>
      agent.backups.compare({ serverId: 'srv_a', from: backupId, to: null, limit: 10, after: null }, signal),
    verify: () => agent.run({ kind: 'backups.verify', backupId, isOffsite: false }, 'srv_a'),
  }
  for (const [way, work] of Object.entries(WAYS)) {
    const expected = await work()
    await atEveryShortage({
      reset: () => {},
      look: () => ({}),
      work: async () => assert.deepEqual(await work(), expected, way),
    })
  }
  await assertSound(agent)
})

promise('a backup is deleted or not', async (t) => {
  const agent = await testAgent(t)
  let backupId = ''
  fillServer(agent.filesOf('srv_a'))
  await atEveryShortage({
    async reset() {
      if ((await agent.backups.list({ serverId: 'srv_a' })).length === 0) ({ backupId } = await agent.create('srv_a'))
    },
    look: () => backupsOf(agent, 'srv_a'),
    work: () => agent.backups.remove({ serverId: 'srv_a', backupId }),
  })
  await assertSound(agent)
})
