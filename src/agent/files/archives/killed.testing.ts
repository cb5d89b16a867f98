// A process that unpacks an archive, and is killed just before its n-th rename, link or unlink.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { fileURLToPath } from 'node:url'
import { layout } from '../../layout.ts'
import { createAgentFiles } from '../index.ts'
import { serverId } from './archives.testing.ts'
import { type UnpackWork, unpack } from './unpack.ts'

const SCRIPT = fileURLToPath(import.meta.url)

export const context = { taskId: 'job_killed', serverId, signal: new AbortController().signal, report: () => {} }

/** Returns whether it was done before that. */
export async function killUnpacking(dataDir: string, work: UnpackWork, atChange: number): Promise<boolean> {
  const child = fork(SCRIPT, [dataDir, JSON.stringify(work), String(atChange)], { execArgv: [] })
  const [status] = await once(child, 'exit')
  if (status !== 0 && status !== null) throw new Error(`it ended with ${status}`)
  return status === 0
}

function dieAt(atChange: number): void {
  let count = 0
  const next = () => {
    if (++count === atChange) process.kill(process.pid, 'SIGKILL')
  }
  const { renameSync, linkSync, unlinkSync } = fs
  fs.renameSync = (from, to) => {
    next()
    renameSync(from, to)
  }
  fs.linkSync = (from, to) => {
    next()
    linkSync(from, to)
  }
  fs.unlinkSync = (path) => {
    next()
    unlinkSync(path)
  }
  syncBuiltinESMExports()
}

if (process.argv[1] === SCRIPT) {
  const [, , dataDir = '', work = '', atChange] = process.argv
  const agent = createAgentFiles({
    layout: layout(dataDir),
    onUnexpected(error) {
      throw error
    },
  })
  await agent.start()
  dieAt(Number(atChange))
  await unpack(agent.server(serverId), JSON.parse(work), context)
  process.exit(0)
}
