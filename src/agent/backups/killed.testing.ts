// Work on backups in a process of its own that is killed in the middle of it. Also the script of that process.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { BackupsWork } from '../../contract/agent-backups.ts'
import { startAgent } from './backups.testing.ts'

const SCRIPT = fileURLToPath(import.meta.url)

export type DoomedWork = BackupsWork | { kind: 'remove'; backupId: string }

/** Nobody else may have the folder open. Answers whether the work was done before the end came. */
export async function killDuring(
  dataDir: string,
  serverId: string,
  work: DoomedWork,
  afterMs: number,
): Promise<boolean> {
  const child = fork(SCRIPT, [dataDir, serverId, JSON.stringify(work)], { execArgv: [] })
  let isDone = false
  try {
    const [first] = (await once(child, 'message')) as [string]
    if (first !== 'begun') throw new Error(`the work did not begin: ${first}`)
    child.on('message', () => {
      isDone = true
    })
    await delay(afterMs)
  } finally {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  return isDone
}

if (process.argv[1] === SCRIPT) {
  const [dataDir = '', serverId = '', text = ''] = process.argv.slice(2)
  const work = JSON.parse(text) as DoomedWork
  const agent = await startAgent(dataDir)
  process.send?.('begun')
  if (work.kind === 'remove') await agent.backups.remove({ serverId, backupId: work.backupId })
  else await agent.run(work, serverId)
  process.send?.('done')
  // Killed here, or told by the end of the channel that nobody is left to do it.
  await once(process, 'disconnect')
}
