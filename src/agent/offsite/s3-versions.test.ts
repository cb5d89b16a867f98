// The mirror in a bucket that keeps what was overwritten and deleted, or even lets nobody remove it.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it, type TestContext } from 'node:test'
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectVersionsCommand,
  type ObjectVersion,
  PutBucketVersioningCommand,
  PutObjectLockConfigurationCommand,
} from '@aws-sdk/client-s3'
import { needs } from '../../../test/support/needs.ts'
import { startVersityGw, type VersityGw } from '../../../test/support/versitygw.ts'
import { createBucket } from '../../blobs/bucket.ts'
import { s3Address } from '../../blobs/s3/address.ts'
import { createRequests } from '../../blobs/s3/requests.ts'
import { assertSameTree, snapshot, startAgent, type Tree, testAgent } from '../backups/backups.testing.ts'
import { findOffsiteStore, listStore, takeOver } from '../backups/store/recovered-store.ts'
import { SERVER, testMirror } from './mirror.testing.ts'
import { s3Target } from './s3-target.ts'

describe('a bucket that keeps versions', needs('versitygw'), () => {
  let gw: VersityGw
  let requests: ReturnType<typeof createRequests>
  before(async () => {
    gw = await startVersityGw({ hasVersions: true })
    requests = createRequests({ ...s3Address(gw.place(''), gw.keys), region: 'us-east-1' })
  })
  after(async () => {
    requests[Symbol.dispose]()
    await gw.stop()
  })

  async function versionsOf(bucket: string, key: string): Promise<ObjectVersion[]> {
    const { Versions = [] } = await requests.client.send(new ListObjectVersionsCommand({ Bucket: bucket, Prefix: key }))
    return Versions
  }

  async function makeBucket(name: string, isLocked: boolean): Promise<void> {
    await requests.client.send(new CreateBucketCommand({ Bucket: name, ObjectLockEnabledForBucket: isLocked }))
    if (!isLocked) {
      const VersioningConfiguration = { Status: 'Enabled' as const }
      await requests.client.send(new PutBucketVersioningCommand({ Bucket: name, VersioningConfiguration }))
      return
    }
    const DefaultRetention = { Mode: 'COMPLIANCE' as const, Days: 1 }
    const ObjectLockConfiguration = { ObjectLockEnabled: 'Enabled' as const, Rule: { DefaultRetention } }
    await requests.client.send(new PutObjectLockConfigurationCommand({ Bucket: name, ObjectLockConfiguration }))
  }

  async function tryBucket(t: TestContext, isLocked: boolean): Promise<void> {
    const bucket = isLocked ? 'locked' : 'versioned'
    await makeBucket(bucket, isLocked)
    const place = { ...gw.place('castle'), bucket }
    const opened = createBucket({ place, keys: gw.keys })
    const target = s3Target(opened, { place, bytesPerSecond: null, isAppendOnly: false })
    const mirror = await testMirror(t, { ...target, dir: join(gw.dir, '..', bucket, 'castle') })
    const { agent } = mirror
    const trees = new Map<string, Tree>()
    for (let count = 0; count < 3; count++) {
      writeFileSync(join(agent.filesOf(SERVER), 'region'), randomBytes(3_000_000))
      const { backupId, tree } = await mirror.backup(SERVER)
      trees.set(backupId, tree)
    }
    assert.equal((await mirror.run({ isThorough: true })).stored.length, 3)
    const [first = '', ...rest] = trees.keys()
    const manifest = `castle/manifests/${SERVER}/${first}`
    const [before] = await versionsOf(bucket, manifest)
    await agent.backups.remove({ serverId: SERVER, backupId: first })
    await agent.run({ kind: 'backups.reclaim' })
    const { surplus, stored } = await mirror.run({ deletedBackups: [first], isThorough: true })
    assert.deepEqual([surplus, stored.length], [null, 2])
    const [deleted] = await versionsOf(bucket, manifest)
    assert.deepEqual([deleted?.VersionId, deleted?.IsLatest], [before?.VersionId, false])
    const version = { Bucket: bucket, Key: manifest, VersionId: deleted?.VersionId }
    const removal = requests.client.send(new DeleteObjectCommand(version))
    if (isLocked) await assert.rejects(removal, { name: /AccessDenied|Locked/ })
    else await removal
    if (isLocked) assert.ok((await requests.client.send(new GetObjectCommand(version))).ContentLength)
    // A new machine finds what is there, and nothing else.
    const fresh = await testAgent(t)
    await fresh.stop()
    const found = await findOffsiteStore(() => opened.open(), 'the bucket', null)
    const listed = await listStore(found)
    assert.deepEqual(listed.map(({ backupId }) => backupId).sort(), rest.sort())
    await takeOver(found, listed, fresh.storeDir, () => {})
    const again = await startAgent(fresh.dataDir, { offsite: () => opened.open() })
    t.after(() => again.stop())
    const [last = ''] = rest.slice(-1)
    const files = again.filesOf('srv_b')
    await again.restore('srv_b', last, { sourceServerId: SERVER })
    assertSameTree(snapshot(files), trees.get(last) ?? {})
  }

  it('Gamekeeper works with both.', async (t) => {
    await t.test('versioning', (inner) => tryBucket(inner, false))
    await t.test('object lock', (inner) => tryBucket(inner, true))
  })
})
