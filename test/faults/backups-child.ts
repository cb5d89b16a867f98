// Runs the backups of an agent until it is killed: one operation after another. It says what it is about to do and what
// it has done, and waits for leave each time, so that whoever kills it knows what was promised.
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { startAgent } from '../../src/agent/backups/backups.testing.ts'
import { changeTree } from './backups-tree.ts'

const [dataDir = '', seedText = '0', key = ''] = process.argv.slice(2)
let seed = Number(seedText)
const random = (below: number) => {
  seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
  return Math.floor((seed / 2_147_483_648) * below)
}

async function tell(event: string, backupId?: string): Promise<void> {
  process.send?.({ event, backupId })
  await once(process, 'message')
}

const agent = await startAgent(dataDir, { key: key ? Buffer.from(key, 'hex') : null })
const root = agent.filesOf('srv_a')

/** All of them are restored again and again: what matters is what happens to them, not how many there are. */
const MANY = 12
const FEW = 3

for (;;) {
  const listed = (await agent.backups.list({ serverId: 'srv_a' })).map(({ backupId }) => backupId).sort()
  const chosen = listed[random(listed.length)]
  const choice = random(10)
  rmSync(join(dataDir, 'servers/srv_a/trash'), { recursive: true, force: true })
  const isMany = listed.length > MANY
  if ((choice < 4 && !isMany) || !chosen) {
    changeTree(root, random)
    await tell('creating')
    await tell('created', (await agent.create('srv_a')).backupId)
  } else if (choice >= 4 && choice < 7) {
    await tell('restoring', chosen)
    await agent.restore('srv_a', chosen)
    await tell('restored', chosen)
  } else if (isMany || (choice < 8 && listed.length > FEW)) {
    await tell('deleting', chosen)
    await agent.backups.remove({ serverId: 'srv_a', backupId: chosen })
    await tell('deleted', chosen)
  } else if (choice < 9) {
    await tell('reclaiming')
    await agent.run({ kind: 'backups.reclaim' })
    await tell('reclaimed')
  } else {
    await tell('scrubbing')
    await agent.run({ kind: 'backups.scrub', share: 0.4 })
    await tell('scrubbed')
  }
}
