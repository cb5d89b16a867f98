// Loaded into the service under test by `node --import`, never in production: every call to the file system and every
// statement of the database passes here. A rule makes a call fail with an error number, or ends the process before or
// after it. The clock of the process is here too.
import fs from 'node:fs'
import { flushCompileCache, syncBuiltinESMExports } from 'node:module'
import { constants } from 'node:os'
import { DatabaseSync, StatementSync } from 'node:sqlite'
import { BroadcastChannel, isMainThread } from 'node:worker_threads'
import pg from 'pg'
import { ALL_OFF, type Fault, FIRST_SWITCHES, type Order, type Report, type Rule, type Switches } from './switches.ts'

type Call = (this: unknown, ...args: unknown[]) => unknown

const CALLS = [
  ...['open', 'opendir', 'read', 'readv', 'readFile', 'readdir', 'readlink', 'write', 'writev', 'writeFile', 'fsync'],
  ...['fdatasync', 'ftruncate', 'truncate', 'rename', 'link', 'symlink', 'unlink', 'mkdir', 'rmdir', 'rm', 'copyFile'],
  ...['chmod', 'fchmod', 'lchown', 'utimes', 'lutimes', 'futimes', 'stat', 'lstat', 'fstat', 'statfs'],
  ...['access', 'realpath', 'chown', 'fchown'],
]
const HANDLE_CALLS = ['read', 'readFile', 'write', 'writev', 'writeFile', 'appendFile', 'sync', 'datasync', 'truncate']
const FRAME = /at (?:async )?(?:new )?(?:([^\s(]+) .*?\(|\(?)file:\/\/.*?\/src\/([^:]+):\d+:\d+/

let switches: Switches = ALL_OFF
const sites = new Map<string, number>()
const struck: string[] = []
const channel = new BroadcastChannel('switchboard')
channel.unref()

/** The call by the two innermost places of ours that led to it; undefined where nobody of ours asked for it. */
function siteOf(name: string): string | undefined {
  const holder: { stack?: string } = {}
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 16
  Error.captureStackTrace(holder, siteOf)
  Error.stackTraceLimit = limit
  const places: string[] = []
  for (const line of (holder.stack ?? '').split('\n')) {
    const [, functionName = '', file] = FRAME.exec(line) ?? []
    if (file === undefined) continue
    const place = `${file}:${functionName.split('.').at(-1)}`
    if (places.at(-1) !== place) places.push(place)
    if (places.length === 2) break
  }
  return places.length > 0 ? `${name} ${places.join(' < ')}` : undefined
}

function faultAt(rules: Rule[], call: string): Fault | undefined {
  for (const rule of rules) {
    if (rule.times <= 0 || !new RegExp(rule.match).test(call)) continue
    if (rule.skip-- > 0) continue
    rule.times--
    struck.push(call)
    channel.postMessage({ struck: call })
    return rule.fault
  }
  return undefined
}

function fileFault(name: string): Fault | undefined {
  if (switches.files.length === 0 && !switches.isCounting) return undefined
  const site = siteOf(name)
  if (site === undefined) return undefined
  if (switches.isCounting) {
    sites.set(site, (sites.get(site) ?? 0) + 1)
    if (!isMainThread) channel.postMessage({ site })
  }
  return faultAt(switches.files, site)
}

function isToWrite(flags: unknown): boolean {
  const { O_WRONLY, O_RDWR, O_CREAT } = fs.constants
  return typeof flags === 'number' ? (flags & (O_WRONLY | O_RDWR | O_CREAT)) !== 0 : /[wa+]/.test(String(flags ?? 'r'))
}

/** Of a directory that is there, a disk that is read-only says that, and not that it is read-only. */
function isThereFirst(name: string, fault: Fault, [path]: unknown[]): boolean {
  return name.startsWith('mkdir') && 'errno' in fault && fault.errno === 'EROFS' && fs.existsSync(String(path))
}

const die = () => process.kill(process.pid, 'SIGKILL')

function errnoError(code: string, syscall: string): Error {
  const errno = -((constants.errno as Record<string, number>)[code] ?? 5)
  return Object.assign(new Error(`${code}: injected, ${syscall}`), { code, errno, syscall })
}

/** `fail` tells the caller of an error in the caller's own way; `after` runs when the call is over. */
function guarded(
  name: string,
  original: Call,
  fail: (error: Error, args: unknown[]) => unknown,
  after: (result: unknown, args: unknown[], then: () => void) => unknown,
): Call {
  const isOpen = name.startsWith('open')
  const guard: Call = function (...args) {
    const fault = fileFault(isOpen && isToWrite(args[1]) ? `${name}+w` : name)
    if (!fault || 'delayMs' in fault || isThereFirst(name, fault, args)) return original.apply(this, args)
    if ('errno' in fault) return fail(errnoError(fault.errno, name), args)
    if (fault.kill === 'before') return die()
    return after(original.apply(this, args), args, die)
  }
  // `promisify` and class checks look at what hangs on the function.
  return Object.defineProperties(guard, Object.getOwnPropertyDescriptors(original))
}

const throwing = (error: Error) => {
  throw error
}
const rejecting = (error: Error) => Promise.reject(error)
const afterPromise = (result: unknown, _args: unknown[], then: () => void) => (result as Promise<unknown>).finally(then)

function patch(holder: object, name: string, make: (original: Call) => Call): void {
  const target = holder as Record<string, Call>
  const original = target[name]
  if (typeof original === 'function') target[name] = make(original)
}

for (const name of CALLS) {
  patch(fs, `${name}Sync`, (original) =>
    guarded(`${name}Sync`, original, throwing, (result, _args, then) => {
      then()
      return result
    }),
  )
  patch(fs, name, (original) =>
    guarded(
      name,
      original,
      (error, args) => process.nextTick(args.at(-1) as Call, error),
      // A callback that is waited for comes within a turn or two of the loop; nobody hears of it any more.
      (_result, _args, then) => setImmediate(then),
    ),
  )
  patch(fs.promises, name, (original) => guarded(name, original, rejecting, afterPromise))
}
const handle = await fs.promises.open('/dev/null', 'r')
for (const name of HANDLE_CALLS)
  patch(Object.getPrototypeOf(handle), name, (original) => guarded(`handle.${name}`, original, rejecting, afterPromise))
await handle.close()
syncBuiltinESMExports()

/** A refusal is said in SQLite's and PostgreSQL's own way to say that the disk is full. */
function refusalOf(fault: Fault | undefined): Error | undefined {
  if (!fault || 'delayMs' in fault) return undefined
  if ('kill' in fault) die()
  return Object.assign(new Error('database or disk is full'), { errcode: 13 })
}
/** A connection that only reads has nothing to commit that a full disk could refuse. */
const ofReader = new WeakSet<object>()
patch(DatabaseSync.prototype, 'prepare', (original) => {
  return function (this: unknown, ...args) {
    const statement = original.apply(this, args) as StatementSync
    if (siteOf('prepare')?.startsWith('prepare control/db/sqlite.ts:open ')) ofReader.add(statement)
    return statement
  }
})
const statementFault = (sql: string) => (switches.statements.length > 0 ? faultAt(switches.statements, sql) : undefined)
for (const name of ['run', 'all', 'get', 'iterate'])
  patch(StatementSync.prototype, name, (original) => {
    return function (this: unknown, ...args) {
      if (ofReader.has(this as object)) return original.apply(this, args)
      const refusal = refusalOf(statementFault((this as StatementSync).sourceSQL))
      if (refusal) throw Object.assign(refusal, { code: 'ERR_SQLITE_ERROR' })
      return original.apply(this, args)
    }
  })
patch(DatabaseSync.prototype, 'exec', (original) => {
  return function (this: unknown, sql, ...rest) {
    const refusal = refusalOf(statementFault(String(sql)))
    if (refusal) throw Object.assign(refusal, { code: 'ERR_SQLITE_ERROR' })
    return original.call(this, sql, ...rest)
  }
})
patch(pg.Client.prototype, 'query', (original) => {
  return function (this: unknown, query, ...rest) {
    const sql = typeof query === 'string' ? query : String((query as { text?: string }).text)
    const fault = statementFault(sql)
    const refusal = refusalOf(fault)
    if (refusal) return rejecting(Object.assign(refusal, { code: '53100' }))
    const answer = original.call(this, query, ...rest)
    if (!fault || !('delayMs' in fault) || !(answer instanceof Promise)) return answer
    return answer.finally(() => new Promise((resolve) => setTimeout(resolve, Math.random() * fault.delayMs)))
  }
})

const RealDate = Date
const now = () => RealDate.now() + switches.clockOffsetMs
globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
  get: (target, key) => (key === 'now' ? now : Reflect.get(target, key)),
})

function obey(order: Order): Report {
  if (order.kind === 'sites') return { kind: 'sites', sites: Object.fromEntries(sites), struck }
  switches = structuredClone(order.switches)
  return { kind: 'set' }
}

switches = { ...ALL_OFF, ...JSON.parse(process.env[FIRST_SWITCHES] ?? '{}') }
if (isMainThread) {
  process.on('message', (order: Order) => {
    if (order.kind === 'set') channel.postMessage({ order })
    process.send?.(obey(order))
    // Node keeps it at the exit, which a process that is killed does not come to.
    flushCompileCache()
  })
  // Whoever gives orders must not keep the service from ending.
  process.channel?.unref()
}
channel.onmessage = (event) => {
  const {
    order,
    site,
    struck: call,
  } = (event as MessageEvent).data as { order?: Order; site?: string; struck?: string }
  if (order && !isMainThread) obey(order)
  if (site && isMainThread) sites.set(site, (sites.get(site) ?? 0) + 1)
  if (call && isMainThread) struck.push(call)
}
