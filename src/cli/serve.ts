// `gamekeeper serve`: the service in the foreground, until it is told to stop.
import { ConfigFault, DataDirInUse, readConfig, type Service, startService } from '../main.ts'

const STOP_WITHIN_MS = 10_000

export async function serve(env: NodeJS.ProcessEnv, say: (line: string) => void): Promise<number> {
  let service: Service
  try {
    service = await startService(readConfig(env))
  } catch (error) {
    if (error instanceof ConfigFault || error instanceof DataDirInUse) {
      process.stderr.write(`${error.message}\n`)
      return 2
    }
    throw error
  }
  greet(service, say)
  await untilToldToStop()
  // What does not let go in time is cut off; everything that was answered is safe already.
  setTimeout(() => process.exit(1), STOP_WITHIN_MS - 500).unref()
  await service.stop()
  return 0
}

function greet({ url, newAdminToken, dns }: Service, say: (line: string) => void): void {
  say(`Gamekeeper listens on ${url}`)
  say(`  API reference  ${url}/docs`)
  if (dns) say(`  DNS            ${dns.host} port ${dns.port}`)
  if (newAdminToken) {
    say('')
    say('This is the admin token. It is shown this once; keep it safe.')
    say(`  ${newAdminToken}`)
    say('')
  }
}

function untilToldToStop(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve())
  })
}
