// `gamekeeper serve`: the service in the foreground, until it is told to stop.
import { setFlagsFromString } from 'node:v8'
import {
  adoptServer as adopt,
  type Config,
  ConfigFault,
  DatabaseInUse,
  DataDirInUse,
  type RecoveredStore,
  readConfig,
  recoverStore as recover,
  rescueToken as rescue,
  type Service,
  type ShowSignInLink,
  StartFault,
  StoreFault,
  settleTicks,
  startService,
  testOffsite as test,
} from '../../main.ts'
import type { MintedToken, NewServer, Server } from '../../sdk/index.ts'
import { command, type Family } from '../command.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../exit-codes.ts'
import { createLogLines } from '../log-lines.ts'

export type { RecoveredStore }

const STOP_WITHIN_MS = 10_000

const main = command({
  summary: 'Run the service in the foreground',
  description:
    'Its settings come from the environment: GAMEKEEPER_HOST, GAMEKEEPER_PORT, GAMEKEEPER_DATA_DIR and the others of\n' +
    'docs/operating.md. The first start makes the admin token and shows it once; on a terminal each start shows a link\n' +
    'that signs in to the panel once.',
  args: [],
  options: {},
  examples: ['gamekeeper serve', 'GAMEKEEPER_PORT=9000 GAMEKEEPER_DATA_DIR=/srv/gamekeeper gamekeeper serve'],
  async run(context) {
    // Unasked, the engine lets garbage grow to several times what is in use, and puts what it takes for long-lived beside
    // what is: with a million files to go through that is half of the memory.
    setFlagsFromString('--heap-growing-percent=60')
    setFlagsFromString('--no-allocation-site-pretenuring')
    // What a start makes stays. For its sake the engine would make room for what does not, which an idle service never uses.
    setFlagsFromString('--semi-space-growth-factor=1')
    await settleTicks()
    const env = context.environment.all
    const { promise: signalled, resolve: stop } = Promise.withResolvers<void>()
    const announce = (started: Greeting) => {
      // First: whoever reads that it listens may tell it to stop at once.
      hearSignals(env, stop)
      return greet(context, started)
    }
    const service = await plainly(() => {
      const config = readConfig(env)
      return startService(config, announce, logFor(context, config.logFormat), {
        showSignInLink: signInLinkFor(context),
      })
    })
    setFlagsFromString('--semi-space-growth-factor=2')
    const reason = await Promise.race([signalled, service.lost]).catch((error: Error) => error)
    // What does not let go in time is cut off; everything that was answered is safe already.
    setTimeout(() => process.exit(EXIT.failed), STOP_WITHIN_MS - 500).unref()
    if (reason) context.io.stderr.write(`${reason.message}\n`)
    await service.stop()
    return reason ? EXIT.failed : EXIT.ok
  },
})

/** The work behind `gamekeeper backup recover --store`: it needs the parts of the service, not the service. */
export function recoverStore(
  env: NodeJS.ProcessEnv,
  {
    store,
    list,
    data,
    keyFile,
  }: { store: string; list: boolean; data?: string | undefined; keyFile?: string | undefined },
  report: Parameters<typeof recover>[1]['report'],
): Promise<RecoveredStore> {
  const settings = {
    ...env,
    ...(data === undefined ? {} : { GAMEKEEPER_DATA_DIR: data }),
    ...(keyFile === undefined ? {} : { GAMEKEEPER_BACKUP_KEY: '', GAMEKEEPER_BACKUP_KEY_FILE: keyFile }),
    GAMEKEEPER_LOG_LEVEL: 'fatal',
  }
  return plainly(() => recover(readConfig(settings), { dir: store, isListOnly: list, report }))
}

/** The work behind `gamekeeper token rescue`. */
export function rescueToken(
  env: NodeJS.ProcessEnv,
  { data }: { data?: string | undefined },
  show: (value: string) => Promise<void>,
): Promise<MintedToken> {
  const settings = {
    ...env,
    ...(data === undefined ? {} : { GAMEKEEPER_DATA_DIR: data }),
    // The service takes a token of one's own by this; here one is made.
    GAMEKEEPER_ADMIN_TOKEN: '',
    GAMEKEEPER_LOG_LEVEL: 'fatal',
  }
  return plainly(() => rescue(readConfig(settings), show))
}

/** The work behind `gamekeeper server create --adopt`. */
export function adoptServer(
  env: NodeJS.ProcessEnv,
  { dir, data }: { dir: string; data?: string | undefined },
  request: NewServer,
): Promise<Server> {
  const settings = {
    ...env,
    ...(data === undefined ? {} : { GAMEKEEPER_DATA_DIR: data }),
    GAMEKEEPER_LOG_LEVEL: 'fatal',
  }
  return plainly(() => adopt(readConfig(settings), dir, request))
}

/** The work behind `gamekeeper offsite test`. */
export function testOffsite(env: NodeJS.ProcessEnv, report: Parameters<typeof test>[1]): ReturnType<typeof test> {
  return plainly(() => test(readConfig(env), report))
}

async function plainly<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (thrown) {
    const error = causeOf(thrown)
    if (error instanceof ConfigFault || error instanceof DataDirInUse || error instanceof DatabaseInUse)
      throw new CommandError(error.message, EXIT.usage)
    if (error instanceof StartFault) throw new CommandError(error.message)
    if (error instanceof StoreFault)
      throw new CommandError(error.message, error.code === 'no_store' ? EXIT.notFound : EXIT.failed, error.code)
    const sentence = sentenceFor(error as NodeJS.ErrnoException)
    throw sentence === undefined ? error : new CommandError(sentence)
  }
}

/** Why a start failed, whatever failed on the way back. */
function causeOf(thrown: unknown): unknown {
  return thrown instanceof SuppressedError ? causeOf(thrown.suppressed) : thrown
}

const LISTEN_FAULTS: Record<string, string> = {
  EADDRINUSE: 'Another program has that port.',
  EACCES: 'This user may not have that port; those below 1024 need more rights.',
  EADDRNOTAVAIL: 'This machine does not have that address.',
}

/** What most often stands against a start lies outside of the program, and a stack would hide it. */
function sentenceFor(error: NodeJS.ErrnoException & { address?: string; port?: number }): string | undefined {
  const { code = '', syscall, address, port } = error
  const listening = syscall === 'listen' || syscall === 'bind' ? LISTEN_FAULTS[code] : undefined
  return listening ? `Gamekeeper cannot listen on ${address} port ${port}. ${listening}` : undefined
}

/** Undefined: as JSON, which is what the logger writes by itself. */
function logFor({ io, paint, json }: Context, format: Config['logFormat']) {
  const isPretty = format === 'pretty' || (format === 'auto' && io.stdout.isTTY && !json)
  return isPretty ? createLogLines((text) => void io.stdout.write(text), paint) : undefined
}

/** Resolves once all of it was handed on, so that a token is kept only when it was shown. */
async function greet(context: Context, { url, newAdminToken, dns }: Greeting): Promise<void> {
  const { paint } = context
  // With room around it: before and after it there is the log.
  const lines = [
    '',
    paint('bold', `Gamekeeper listens on ${url}`),
    `  API reference  ${url}/docs`,
    ...(dns ? [`  DNS            ${dns.host} port ${dns.port}`] : []),
    ...(newAdminToken
      ? ['', paint('bold', 'This is the admin token. It is shown only once; keep it safe.'), `  ${newAdminToken}`]
      : []),
    '',
  ]
  const text = context.json ? JSON.stringify({ url, adminToken: newAdminToken, dns }) : lines.join('\n')
  try {
    await context.hand(`${text}\n`)
  } catch (error) {
    // A service need not be listened to, but a token that nobody has seen would lock its owner out.
    if (newAdminToken) throw new StartFault(`The admin token could not be shown (${codeOf(error)}); none was made.`)
  }
}

/** Only on a terminal: elsewhere what is written ends up in a log, where a link that signs in does not belong. */
function signInLinkFor({ io, json, paint, hand }: Context): ShowSignInLink | undefined {
  if (!io.stdout.isTTY || json) return undefined
  // Whoever cannot be shown it has lost nothing: `gamekeeper sign-in` makes another.
  return ({ url }) =>
    hand(`${paint('bold', 'Sign in to the panel with this link, once and within 15 minutes:')}\n  ${url}\n\n`).catch(
      () => {},
    )
}

type Greeting = Pick<Service, 'url' | 'newAdminToken' | 'dns'>

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code ?? 'standard output is closed'

const PARENT_CHECK_MS = 500

/**
 * The handlers stay: from a terminal the signal may come twice, and the second must not cut the stopping short. npx puts a
 * shell between itself and us, which dies of a signal without handing it on: there the end of our parent is the sign.
 */
function hearSignals(env: NodeJS.ProcessEnv, stop: () => void): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop())
  if (env.npm_command === undefined) return
  const parent = process.ppid
  setInterval(() => process.ppid === parent || stop(), PARENT_CHECK_MS).unref()
}

export const serve: Family = { main }
