// Whether the victim has what it wrote, byte for byte: its files, its last backup put back, and one entry for every change.
import assert from 'node:assert/strict'
import { jobEnded, type Scene } from './scene.ts'
import type { VictimReport } from './victim.ts'

interface Entry {
  event: string
  actor: { type: string; id: string | null }
  requestId: string | null
}

export async function inspectVictim(scene: Scene, report: VictimReport): Promise<void> {
  await assertFiles(scene, report.files)
  await assertActivity(scene, report)
  const last = report.backups.at(-1)
  assert.ok(last, 'the victim has no backup')
  await restore(scene, last.id)
  await assertFiles(scene, last.files)
}

/** As the admin: whoever was attacked may have used up the requests of a minute. */
async function assertFiles({ call, victim, keeper }: Scene, expected: VictimReport['files']): Promise<void> {
  const found = await filesBelow({ call, victim }, '')
  assert.deepEqual(found.sort(), expected.map(([path]) => path).sort(), 'the files of the victim')
  for (const [path, content] of expected) {
    const address = `${keeper.url}/v1/game/files/${victim.serverId}/content?path=${encodeURIComponent(path)}`
    const reply = await fetch(address, { headers: { authorization: `Bearer ${keeper.token}` } })
    const bytes = Buffer.from(await reply.arrayBuffer())
    assert.ok(bytes.equals(content), `${path} has ${bytes.length} other bytes than the ${content.length} written`)
  }
}

async function filesBelow(scene: Pick<Scene, 'call' | 'victim'>, path: string): Promise<string[]> {
  const listed = await scene.call('GET', `/files/${scene.victim.serverId}?limit=100&path=${path || '/'}`)
  assert.equal(listed.status, 200, listed.text)
  const entries = listed.body.data as { path: string; kind: string }[]
  const found: string[] = []
  // One after the other: with few descriptors, few connections are let in from one address.
  for (const { kind, path: at } of entries) found.push(...(kind === 'directory' ? await filesBelow(scene, at) : [at]))
  return found
}

async function assertActivity({ call, victim, keeper }: Scene, { changes }: VictimReport): Promise<void> {
  const { text } = await call('GET', `/servers/${victim.serverId}/activity`, {
    headers: { accept: 'application/x-ndjson' },
  })
  const entries: Entry[] = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  for (const { event, requestId } of changes) {
    const recorded = entries.filter((entry) => entry.requestId === requestId && entry.event === event)
    assert.equal(recorded.length, 1, `${requestId} has ${recorded.length} entries ${event}`)
  }
  const [, adminId] = keeper.token.split('_')
  const ours = new Set([victim.tokenId, `tok_${adminId}`, adminId, null])
  const strangers = entries.filter(({ actor }) => actor.type === 'token' && !ours.has(actor.id))
  assert.deepEqual(strangers, [], "what others did in the victim's server")
}

async function restore({ call, victim }: Scene, backupId: string): Promise<void> {
  const body = { mode: 'replace', safetyBackup: false }
  const asked = await call('POST', `/backups/${victim.serverId}/${backupId}/restore`, { body })
  assert.equal(asked.status, 202, asked.text)
  const job = await jobEnded(call, victim.serverId, asked.body.id)
  assert.equal(job.status, 'completed', JSON.stringify(job))
}
