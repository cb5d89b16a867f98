// What a tenant can put into a backup: patterns, sizes and numbers that cost others nothing.
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { killLeftovers } from '../support/process.ts'
import { until } from '../support/until.ts'
import { attack } from './support/attack.ts'
import { openScene, type Tenant } from './support/scene.ts'
import { TIMES } from './support/size.ts'

after(killLeftovers)

async function startBackup(tenant: Tenant, body: object = {}): Promise<string> {
  const started = await tenant.call('POST', `/backups/${tenant.serverId}`, { body })
  assert.equal(started.status, 202, started.text)
  return started.body.id
}

// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting on it
async function backupEnded(tenant: Tenant, backupId: string): Promise<any> {
  return await until(async () => {
    const { body } = await tenant.call('GET', `/backups/${tenant.serverId}/${backupId}`)
    return ['completed', 'failed', 'cancelled'].includes(body.status) ? body : undefined
  })
}

test('ignore patterns that make a backtracking matcher hang', async (t) => {
  const scene = await openScene(t)
  const nested = join(scene.attacker.folder, ...Array(200).fill('a'))
  mkdirSync(nested, { recursive: true })
  writeFileSync(join(nested, 'c'), 'kept')
  const patterns = [`${'**/a/'.repeat(12)}b`, `${'**/a/'.repeat(6500)}b`, `${'*a'.repeat(16_000)}b`, '*a'.repeat(60)]
  await attack(scene, async (attacker) => {
    for (const ignored of patterns.slice(0, TIMES === 1 ? 2 : undefined)) {
      const ended = await backupEnded(attacker, await startBackup(attacker, { ignored }))
      assert.equal(ended.status, 'completed', JSON.stringify(ended))
      assert.equal(ended.fileCount, 1)
    }
  })
})
