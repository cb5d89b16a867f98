// What the kernel says of a process differs for the first look at it, for tests.
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { mock } from 'node:test'

/** No descriptor is left to look with; by the next look there is one again. */
export function noDescriptor(): never {
  throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' })
}

export function firstLook(pid: number, answer: () => string) {
  const { readFileSync } = fs
  let looks = 0
  const mocked = mock.method(fs, 'readFileSync', (...args: Parameters<typeof readFileSync>) =>
    args[0] === `/proc/${pid}/stat` && ++looks === 1 ? answer() : readFileSync(...args),
  )
  syncBuiltinESMExports()
  return {
    count: () => looks,
    [Symbol.dispose]() {
      mocked.mock.restore()
      syncBuiltinESMExports()
    },
  }
}
