// Work on backups in a process of its own that is killed in the middle of it. Also the script of that process.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { BackupsWork } from '../../../contract/agent/agent-backups.ts'
import { startAgent } from '../backups.testing.ts'
import { leaveAll, openBucket } from '../offsite.testing.ts'

const SCRIPT = fileURLToPath(import.meta.url)

/** `leave`: every pack leaves the disk for the off-site store. */
export type DoomedWork = BackupsWork | { kind: 'remove'; backupId: string } | { kind: 'leave' }

/**
 * The end comes after so many milliseconds, where that is said, or before the process renames for that time, or before it
 * changes the tree in any way (renames, links, unlinks, makes or removes a directory) for that time, or before it renames
 * or unlinks a blob of the store for that time, whichever is sooner. `offsiteDir`: a folder in the place of an off-site
 * store.
 */
export interface Doom {
  afterMs?: number
  atRename?: number
  atChange?: number
  atStep?: number
  offsiteDir?: string
}

/** Nobody else may have the folder open. Answers whether the work was done before the end came. */
export async function killDuring(
  dataDir: string,
  serverId: string,
  work: DoomedWork,
  { afterMs, atRename = 0, atChange = 0, atStep = 0, offsiteDir = '' }: Doom,
): Promise<boolean> {
  const dooms = [atRename, atChange, atStep].map(String)
  const child = fork(SCRIPT, [dataDir, serverId, JSON.stringify(work), ...dooms, offsiteDir], { execArgv: [] })
  let isDone = false
  const [begun, done] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  // Both may come at once where this process is the slower one.
  child.on('message', (said) => {
    isDone ||= said === 'done'
    if (isDone) done.resolve()
    else begun.resolve()
  })
  const exited = once(child, 'exit')
  try {
    await Promise.race([begun.promise, exited.then(() => Promise.reject(new Error('the work did not begin')))])
    const time = afterMs === undefined ? [] : [delay(afterMs)]
    await Promise.race([...time, exited, done.promise])
  } finally {
    child.kill('SIGKILL')
    await exited
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

/** Of the store itself, which changes nothing but by these two. */
function dieAtStep(atStep: number): void {
  let count = 0
  for (const name of ['rename', 'unlink'] as const) {
    const change = fs.promises[name] as (...parameters: unknown[]) => Promise<void>
    const counted = async (...parameters: unknown[]) => {
      if (++count === atStep) process.kill(process.pid, 'SIGKILL')
      await change(...parameters)
    }
    Object.assign(fs.promises, { [name]: counted })
  }
  syncBuiltinESMExports()
}

if (process.argv[1] === SCRIPT) {
  const [dataDir = '', serverId = '', text = '', atRename = '', atChange = '', atStep = '', offsiteDir = ''] =
    process.argv.slice(2)
  const work = JSON.parse(text) as DoomedWork
  const agent = await startAgent(dataDir, offsiteDir ? { offsite: openBucket(offsiteDir).open } : {})
  process.send?.('begun')
  dieAtRename(Number(atRename))
  dieAtChange(Number(atChange))
  dieAtStep(Number(atStep))
  if (work.kind === 'leave') await leaveAll(agent)
  else if (work.kind === 'remove') await agent.backups.remove({ serverId, backupId: work.backupId })
  else await agent.run(work, serverId)
  process.send?.('done')
  // Killed here, or told by the end of the channel that nobody is left to do it.
  await once(process, 'disconnect')
}
