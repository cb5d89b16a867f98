// Loaded into every process of the test suite by `node --import`, never in production: a file descriptor that is closed
// twice, or used after it was closed, is an uncaught error with the stack of the misuse, of the close and of the open.
// A number that was closed is kept busy with /dev/null for a while: so that the second close meets the poison and not a
// file that somebody else has opened meanwhile, which no look at a number could tell apart.
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { BroadcastChannel, getEnvironmentData, isMainThread, setEnvironmentData } from 'node:worker_threads'

type Call = (this: unknown, ...args: unknown[]) => unknown

const NUMBERS = 65_536
const HELD_AT_MOST = 32
/** Lower numbers that are free come first when one is opened. */
const TRIES = 8
const SHARED = 'gamekeeper.descriptors'
const CLOSED = 1
const OPEN = 2
const STACK_FRAMES = 12

const USES = [
  ...['read', 'readv', 'write', 'writev', 'fstat', 'fsync', 'fdatasync', 'ftruncate', 'fchmod', 'fchown', 'futimes'],
]
const PATH_USES = [
  ...['open', 'opendir', 'readdir', 'readFile', 'writeFile', 'stat', 'lstat', 'mkdir', 'rmdir', 'unlink', 'rename'],
  ...['link', 'symlink', 'chmod', 'lchown', 'chown', 'utimes', 'lutimes', 'copyFile', 'realpath'],
]

const real = { openSync: fs.openSync, closeSync: fs.closeSync, writeSync: fs.writeSync }

/** Threads share the numbers, so they share what is known of them. 0: nothing is. */
const states = new Uint8Array(
  (getEnvironmentData(SHARED) as SharedArrayBuffer | undefined) ?? new SharedArrayBuffer(NUMBERS),
)
setEnvironmentData(SHARED, states.buffer)
const openedAt: (Error | undefined)[] = []
const closedAt: (Error | undefined)[] = []
const channel = new BroadcastChannel(SHARED)
channel.unref()

function here(what: string, below: Call): Error {
  const limit = Error.stackTraceLimit
  // The frames are taken once, from below.
  Error.stackTraceLimit = 0
  const error = new Error(what)
  Error.stackTraceLimit = STACK_FRAMES
  Error.captureStackTrace(error, below)
  Error.stackTraceLimit = limit
  return error
}

function report(misuse: Error, fd: number): Error {
  const stackOf = (error: Error | undefined) => error?.stack ?? 'in another thread'
  misuse.stack = [misuse.stack, stackOf(closedAt[fd]), stackOf(openedAt[fd])].join('\n')
  Object.assign(misuse, { code: 'EBADF' })
  real.writeSync(2, `${misuse.stack}\n`)
  if (isMainThread) raise(misuse)
  else channel.postMessage(misuse.stack)
  return misuse
}

/** Outside of whatever might catch it. */
function raise(error: Error): void {
  process.nextTick(() => {
    throw error
  })
}

/** Only numbers that were seen closed: what this does not know of is left alone. */
const isClosed = (fd: unknown): fd is number => typeof fd === 'number' && states[fd] === CLOSED

function noteOpen(fd: number, below: Call): void {
  states[fd] = OPEN
  openedAt[fd] = here(`descriptor ${fd} was opened`, below)
}

function noteClosed(fd: number, below: Call): void {
  states[fd] = CLOSED
  closedAt[fd] = here(`descriptor ${fd} was closed`, below)
}

const held: number[] = []
/** Where numbers are scarce, none can be spared. */
const heldAtMost = softLimit() < 1024 ? 0 : HELD_AT_MOST

function softLimit(): number {
  const line = /^Max open files\s+(\S+)/m.exec(fs.readFileSync('/proc/self/limits', 'utf8'))?.[1]
  return line === undefined || line === 'unlimited' ? Number.POSITIVE_INFINITY : Number(line)
}

function hold(fd: number): void {
  if (heldAtMost === 0) return
  const lower: number[] = []
  try {
    for (let tries = 0; tries < TRIES; tries++) {
      const got = real.openSync('/dev/null', 'r')
      if (got === fd) {
        held.push(fd)
        break
      }
      lower.push(got)
      if (got > fd) break
    }
  } catch {
    // There are none left to hold it with.
  }
  for (const got of lower) real.closeSync(got)
  if (held.length > heldAtMost) real.closeSync(held.shift() as number)
}

function patch(holder: object, name: string, make: (original: Call) => Call): void {
  const target = holder as Record<string, Call>
  const original = target[name]
  if (typeof original !== 'function') return
  // `promisify` looks at what hangs on the function.
  target[name] = Object.defineProperties(make(original), Object.getOwnPropertyDescriptors(original))
}

const refuse = {
  sync: (error: Error) => {
    throw error
  },
  callback: (error: Error, args: unknown[]) =>
    process.nextTick(args.findLast((arg) => typeof arg === 'function') as Call, error),
  promise: (error: Error) => Promise.reject(error),
}

function closedIn(path: unknown): number | undefined {
  const text = Buffer.isBuffer(path) ? path.toString('latin1', 0, 64) : path
  const [, number] = typeof text === 'string' ? (/^\/proc\/(?:self|\d+)\/fd\/(\d+)/.exec(text) ?? []) : []
  const fd = Number(number)
  return number !== undefined && isClosed(fd) ? fd : undefined
}

function guardUse(name: string, original: Call, fail: (error: Error, args: unknown[]) => unknown): Call {
  const guard: Call = function (...args) {
    const [fd] = args
    if (isClosed(fd)) return fail(report(here(`${name} of descriptor ${fd}, which is closed`, guard), fd), args)
    return original.apply(this, args)
  }
  return guard
}

function guardPath(name: string, original: Call, fail: (error: Error, args: unknown[]) => unknown): Call {
  const guard: Call = function (...args) {
    const fd = closedIn(args[0]) ?? closedIn(args[1])
    if (fd !== undefined)
      return fail(report(here(`${name} through descriptor ${fd}, which is closed`, guard), fd), args)
    return original.apply(this, args)
  }
  return guard
}

for (const name of USES) {
  patch(fs, `${name}Sync`, (original) => guardUse(`${name}Sync`, original, refuse.sync))
  patch(fs, name, (original) => guardUse(name, original, refuse.callback))
}
for (const name of PATH_USES) {
  patch(fs, `${name}Sync`, (original) => guardPath(`${name}Sync`, original, refuse.sync))
  patch(fs, name, (original) => guardPath(name, original, refuse.callback))
  patch(fs.promises, name, (original) => guardPath(name, original, refuse.promise))
}

patch(fs, 'openSync', (original) => {
  const guard: Call = function (...args) {
    const fd = original.apply(this, args) as number
    noteOpen(fd, guard)
    return fd
  }
  return guard
})
patch(fs, 'open', (original) => {
  const guard: Call = function (...args) {
    const then = args.pop() as Call
    const opening = here('it was asked for', guard)
    return original.call(this, ...args, (error: Error | null, fd: number) => {
      if (!error) {
        states[fd] = OPEN
        openedAt[fd] = opening
      }
      then.call(this, error, fd)
    })
  }
  return guard
})

function refusedClose(fd: number, below: Call): Error {
  return report(here(`descriptor ${fd} is closed twice`, below), fd)
}

patch(fs, 'closeSync', (original) => {
  const guard: Call = function (fd) {
    if (isClosed(fd)) throw refusedClose(fd, guard)
    noteClosed(fd as number, guard)
    original.call(this, fd)
    hold(fd as number)
    return undefined
  }
  return guard
})
patch(fs, 'close', (original) => {
  const guard: Call = function (fd, then) {
    const done = (then ?? (() => {})) as Call
    if (isClosed(fd)) return process.nextTick(done, refusedClose(fd, guard))
    noteClosed(fd as number, guard)
    return original.call(this, fd, (error: Error | null) => {
      if (!error) hold(fd as number)
      done.call(this, error)
    })
  }
  return guard
})

/** A handle closes its number once, whatever is asked of it: what can go wrong is that somebody else has closed it. */
patch(fs.promises, 'open', (original) => {
  const guard: Call = async function (...args) {
    const handle = (await original.apply(this, args)) as fs.promises.FileHandle
    noteOpen(handle.fd, guard)
    let isOpen = true
    patch(handle, 'close', (close) => () => {
      const { fd } = handle
      if (isOpen && fd >= 0) {
        isOpen = false
        if (isClosed(fd)) return Promise.reject(refusedClose(fd, guard))
        noteClosed(fd, guard)
      }
      return close.call(handle)
    })
    return handle
  }
  return guard
})
syncBuiltinESMExports()

if (isMainThread)
  channel.onmessage = (event) => {
    const error = new Error('a thread misused a descriptor')
    error.stack = String((event as MessageEvent).data)
    raise(error)
  }
