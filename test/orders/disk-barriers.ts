// Await points within the agent: before each asynchronous call of the file system that can tell two orders apart. It has
// to be imported before the agent, which takes some of these functions when it is loaded.
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { currentActor, step } from './actors.ts'

type Call = (...values: unknown[]) => unknown

const WITH_CALLBACK = ['open', 'fsync', 'fdatasync', 'writev'] as const
const WITH_PROMISE = ['open', 'rename', 'unlink', 'rm', 'rmdir', 'readdir', 'readFile', 'mkdir', 'copyFile'] as const

for (const name of WITH_CALLBACK) {
  const original = fs[name] as Call
  const barred: Call = (...values) => {
    const actor = currentActor()
    if (!actor?.stopsAtDisk) return original(...values)
    void actor.arrive(`disk ${name}${name === 'open' ? ` ${placeOf(values[0])}` : ''}`).then(() => original(...values))
  }
  Object.assign(fs, { [name]: barred })
}

for (const name of WITH_PROMISE) {
  const original = fs.promises[name] as Call
  const barred: Call = (...values) => {
    const actor = currentActor()
    if (!actor?.stopsAtDisk) return original(...values)
    return actor
      .arrive(`disk ${name} ${placeOf(values[0])}`)
      .then(() => step('underWay', async () => original(...values)))
  }
  Object.assign(fs.promises, { [name]: barred })
}

syncBuiltinESMExports()

/** Enough of a path to know it by, without what differs from run to run. */
function placeOf(path: unknown): string {
  const parts = String(path).split('/').slice(-2)
  return parts.map((part) => part.replace(/[0-9a-z]{26}|[0-9a-f]{16,}|(?<=orders-)\w+/g, '…')).join('/')
}
