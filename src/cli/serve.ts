// `gamekeeper serve`: the service in the foreground, until it is told to stop.
import { setFlagsFromString } from 'node:v8'
import {
  ConfigFault,
  DataDirInUse,
  type RecoveredStore,
  readConfig,
  recoverStore as recover,
  type Service,
  StoreFault,
  startService,
} from '../main.ts'
import { command, type Family } from './command.ts'
import type { Context } from './context.ts'
import { CommandError, EXIT } from './exit-codes.ts'

export type { RecoveredStore }

const STOP_WITHIN_MS = 10_000

const main = command({
  summary: 'Run the service in the foreground, until it is told to stop',
  description:
    'Its settings come from the environment: GAMEKEEPER_HOST, GAMEKEEPER_PORT, GAMEKEEPER_DATA_DIR and the others of\n' +
    'docs/operating.md. The first start makes the admin token and shows it once.',
  args: [],
  options: {},
  examples: ['gamekeeper serve', 'GAMEKEEPER_PORT=9000 GAMEKEEPER_DATA_DIR=/srv/gamekeeper gamekeeper serve'],
  async run(context) {
    // Unasked, the engine lets garbage grow to several times what is in use, and puts what it takes for long-lived beside
    // what is: with a million files to go through that is half of the memory.
    setFlagsFromString('--heap-growing-percent=60')
    setFlagsFromString('--no-allocation-site-pretenuring')
    const service = await start(context.environment.all)
    greet(context, service)
    await untilToldToStop()
    // What does not let go in time is cut off; everything that was answered is safe already.
    setTimeout(() => process.exit(1), STOP_WITHIN_MS - 500).unref()
    await service.stop()
    return EXIT.ok
  },
})

const start = (env: NodeJS.ProcessEnv): Promise<Service> => plainly(() => startService(readConfig(env)))

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

async function plainly<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ConfigFault || error instanceof DataDirInUse) throw new CommandError(error.message, EXIT.usage)
    if (error instanceof StoreFault)
      throw new CommandError(error.message, error.code === 'no_store' ? EXIT.notFound : EXIT.failed, error.code)
    const sentence = sentenceFor(error as NodeJS.ErrnoException)
    throw sentence === undefined ? error : new CommandError(sentence)
  }
}

const LISTEN_FAULTS: Record<string, string> = {
  EADDRINUSE: 'Another program has that port.',
  EACCES: 'This user may not have that port; those below 1024 need more rights.',
  EADDRNOTAVAIL: 'This machine does not have that address.',
}
const CONNECT_FAULTS = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ETIMEDOUT'])

/** What most often stands against a start lies outside of the program, and a stack would hide it. */
function sentenceFor(error: NodeJS.ErrnoException & { address?: string; port?: number }): string | undefined {
  const { code = '', syscall, address, port } = error
  const listening = syscall === 'listen' || syscall === 'bind' ? LISTEN_FAULTS[code] : undefined
  if (listening) return `Gamekeeper cannot listen on ${address} port ${port}. ${listening}`
  // At a start the database is all that is connected to.
  return CONNECT_FAULTS.has(code) ? `The database of GAMEKEEPER_DATABASE_URL cannot be reached (${code}).` : undefined
}

function greet(context: Context, { url, newAdminToken, dns }: Service): void {
  if (context.json) context.printLine({ url, adminToken: newAdminToken, dns })
  context.say(`Gamekeeper listens on ${url}`)
  context.say(`  API reference  ${url}/docs`)
  if (dns) context.say(`  DNS            ${dns.host} port ${dns.port}`)
  if (newAdminToken) {
    context.say('')
    context.say('This is the admin token. It is shown this once; keep it safe.')
    context.say(`  ${newAdminToken}`)
    context.say('')
  }
}

/** The handlers stay: from a terminal the signal may come twice, and the second must not cut the stopping short. */
function untilToldToStop(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => resolve())
  })
}

export const serve: Family = { main }
