// `gamekeeper serve`: the service in the foreground, until it is told to stop.
import { ConfigFault, DataDirInUse, readConfig, type Service, startService } from '../main.ts'
import { command, type Family } from './command.ts'
import type { Context } from './context.ts'
import { CommandError, EXIT } from './exit-codes.ts'

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
    const service = await start(context.environment.all)
    greet(context, service)
    await untilToldToStop()
    // What does not let go in time is cut off; everything that was answered is safe already.
    setTimeout(() => process.exit(1), STOP_WITHIN_MS - 500).unref()
    await service.stop()
    return EXIT.ok
  },
})

async function start(env: NodeJS.ProcessEnv): Promise<Service> {
  try {
    return await startService(readConfig(env))
  } catch (error) {
    if (error instanceof ConfigFault || error instanceof DataDirInUse) throw new CommandError(error.message, EXIT.usage)
    throw error
  }
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
