// Work on backups in a process of its own that is killed in the middle of it. Also the script of that process.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { BackupsWork } from '../../contract/agent/agent-backups.ts'
import { startAgent } from './backups.testing.ts'

const SCRIPT = fileURLToPath(import.meta.url)

export type DoomedWork = BackupsWork | { kind: 'remove'; backupId: string }

/**
 * The end comes after so many milliseconds, or before the process renames for that time, or before it changes the tree in
 * any way (renames, links, unlinks, makes or removes a directory) for that time, whichever is sooner.
 */
export interface Doom {
  afterMs: number
  atRename?: number
  atChange?: number
}

/** Nobody else may have the folder open. Answers whether the work was done before the end came. */
export async function killDuring(
  dataDir: string,
  serverId: string,
  work: DoomedWork,
  { afterMs, atRename = 0, atChange = 0 }: Doom,
): Promise<boolean> {
  const child = fork(SCRIPT, [dataDir, serverId, JSON.stringify(work), String(atRename), String(atChange)], {
    execArgv: [],
  })
  let isDone = false
  try {
    const [first] = (await once(child, 'message')) as [string]
    if (first !== 'begun') throw new Error(`the work did not begin: ${first}`)
    const done = once(child, 'message').then(() => {
      isDone = true
    })
    await Promise.race([delay(afterMs), once(child, 'exit'), done])
  } finally {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  return isDone
}

/** Whatever becomes visible does so by a rename: the instants around them are those that matter. */
function dieAtRename(atRename: number): void {
  const { renameSync } = fs
  const { rename } = fs.promises
  let count = 0
  const next = () => {
    if (++count === atRename) process.kill(process.pid, 'SIGKILL')
  }
  fs.renameSync = (...paths) => {
    next()
    renameSync(...paths)
  }
  fs.promises.rename = async (...paths) => {
    next()
    await rename(...paths)
  }
  syncBuiltinESMExports()
}

function dieAtChange(atChange: number): void {
  let count = 0
  for (const name of ['renameSync', 'linkSync', 'unlinkSync', 'mkdirSync', 'rmdirSync'] as const) {
    const change = fs[name] as (...parameters: unknown[]) => unknown
    const counted = (...parameters: unknown[]) => {
      if (++count === atChange) process.kill(process.pid, 'SIGKILL')
      return change(...parameters)
    }
    Object.assign(fs, { [name]: counted })
  }
  syncBuiltinESMExports()
}

if (process.argv[1] === SCRIPT) {
  const [dataDir = '', serverId = '', text = '', atRename = '', atChange = ''] = process.argv.slice(2)
  const work = JSON.parse(text) as DoomedWork
  const agent = await startAgent(dataDir)
  process.send?.('begun')
  dieAtRename(Number(atRename))
  dieAtChange(Number(atChange))
  if (work.kind === 'remove') await agent.backups.remove({ serverId, backupId: work.backupId })
  else await agent.run(work, serverId)
  process.send?.('done')
  // Killed here, or told by the end of the channel that nobody is left to do it.
  await once(process, 'disconnect')
}
