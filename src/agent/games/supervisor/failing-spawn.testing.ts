// Supervisors that cannot be started, for tests.
import childProcess, { ChildProcess } from 'node:child_process'
import { syncBuiltinESMExports } from 'node:module'
import { mock } from 'node:test'

/** As `spawn` gives it back without a descriptor to spare: without any pipes. */
export function childWithoutPipes(): ChildProcess {
  const child = new ChildProcess()
  process.nextTick(() => child.emit('error', new Error('spawn EMFILE')))
  return child
}

/** The first supervisors that are started are whole. */
export function failingSpawn(whole: number, fail: () => ChildProcess) {
  const { spawn } = childProcess
  let count = 0
  const mocked = mock.method(childProcess, 'spawn', (...args: Parameters<typeof spawn>) =>
    ++count > whole ? fail() : spawn(...args),
  )
  syncBuiltinESMExports()
  return {
    count: () => count,
    [Symbol.dispose]() {
      mocked.mock.restore()
      syncBuiltinESMExports()
    },
  }
}
