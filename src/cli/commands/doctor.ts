// `gamekeeper doctor`: looks at everything that has to be right, and says what to do about what is not.
import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { CHECK_PENDING } from '../../contract/readiness.ts'
import { allows } from '../../contract/scopes.ts'
import { type Client, isApiError, type OwnToken, type Readiness } from '../../sdk/index.ts'
import { command, type Family } from '../command.ts'
import { type Context, connect } from '../context.ts'
import { EXIT } from '../exit-codes.ts'
import { type Finding, formatFinding } from '../findings.ts'
import { formatAgo, formatSize } from '../units.ts'

const NODE_MAJOR = 26
const SPACE_WARN_BYTES = 5 * 1024 ** 3
const SPACE_FAIL_BYTES = 256 * 1024 ** 2
const SKEW_WARN_MS = 5000
const PROBE = { timeoutMs: 10_000 }
/** On a busy disk a check takes longer than one answer waits for it: that is slow, not broken. */
const PENDING_ASKED_TIMES = 10

const main = command({
  summary: 'Check this machine, the service and the token',
  description: 'Exits with 0 when nothing fails, warnings included, and with 1 otherwise.',
  args: [],
  options: {},
  examples: ['gamekeeper doctor', 'gamekeeper doctor --url https://games.example.org --token-file ops.token --json'],
  async run(context) {
    const findings: Finding[] = []
    const add = (finding: Finding) => {
      findings.push(finding)
      if (!context.json) context.say(formatFinding(context, finding))
    }
    for (const finding of [checkNode(), ...checkDataDir(context), ...checkTokenFile(context)]) add(finding)
    for await (const finding of checkService(context)) add(finding)
    const healthy = findings.every(({ status }) => status !== 'fail')
    if (context.json) context.print({ healthy, findings })
    return healthy ? EXIT.ok : EXIT.failed
  },
})

function checkNode(): Finding {
  const fits = Number(process.versions.node.split('.')[0]) >= NODE_MAJOR
  const remedy = fits ? {} : { remedy: 'Run "npm ci" in the checkout: it brings the right one.' }
  return { check: 'Node', status: fits ? 'ok' : 'fail', detail: process.version, ...remedy }
}

/** Only where the service is on this machine: elsewhere it has its own. */
function checkDataDir({ url, environment: { dataDir } }: Context): Finding[] {
  const check = 'data directory'
  const host = URL.parse(url)?.hostname ?? ''
  if (!/^(localhost|127\..*|\[::1\])$/.test(host))
    return [{ check, status: 'skip', detail: 'the service is elsewhere' }]
  const exists = existsSync(dataDir)
  const place = exists ? dataDir : dirname(dataDir)
  try {
    accessSync(place, constants.W_OK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EROFS') {
      const remedy = 'Find out why the disk was made read-only, then mount it for writing again.'
      return [{ check, status: 'fail', detail: `${place} is on a read-only disk`, remedy }]
    }
    const remedy = 'Let the user that runs the service write there, or set GAMEKEEPER_DATA_DIR.'
    return [{ check, status: 'fail', detail: `${place} cannot be written to`, remedy }]
  }
  const detail = exists ? `${dataDir} can be written to` : `${dataDir} does not exist yet; the first start creates it`
  return [{ check, status: 'ok', detail }, checkSpace(place)]
}

function checkSpace(place: string): Finding {
  const { bavail, bsize } = statfsSync(place)
  const free = bavail * bsize
  const status = free < SPACE_FAIL_BYTES ? 'fail' : free < SPACE_WARN_BYTES ? 'warn' : 'ok'
  const remedy = status === 'ok' ? {} : { remedy: 'Make room, or move the data directory to a larger disk.' }
  return { check: 'free space', status, detail: `${formatSize(free)} free`, ...remedy }
}

function checkTokenFile({ tokenFile }: Context): Finding[] {
  if (tokenFile === null || !existsSync(tokenFile)) return []
  const open = (statSync(tokenFile).mode & 0o077) !== 0
  if (!open) return [{ check: 'token file', status: 'ok', detail: 'only you can read it' }]
  const remedy = `chmod 600 ${tokenFile}`
  return [{ check: 'token file', status: 'warn', detail: 'others on this machine can read it', remedy }]
}

async function* checkService(context: Context): AsyncGenerator<Finding, void, undefined> {
  const { signal } = context.io
  let settled: Awaited<ReturnType<typeof askUntilSettled>>
  try {
    settled = await askUntilSettled(context)
  } catch (error) {
    signal.throwIfAborted()
    const remedy = 'Start it with "gamekeeper serve", or give the right address with --url or GAMEKEEPER_URL.'
    yield { check: 'service', status: 'fail', detail: (error as Error).message, remedy }
    return
  }
  yield { check: 'service', status: 'ok', detail: `${context.url} answers` }
  yield* Object.entries(settled.readiness.checks).map(checkReady)
  yield checkClock(settled.readiness, settled.at)
  yield* checkToken(context)
}

async function askUntilSettled(context: Context): Promise<{ readiness: Readiness; at: number }> {
  const { service } = connect(context.url, null)
  for (let asked = 1; ; asked++) {
    const askedAt = context.now()
    const readiness = await service.readiness({ signal: context.io.signal, ...PROBE })
    const isPending = Object.values(readiness.checks).includes(CHECK_PENDING)
    if (!isPending || asked === PENDING_ASKED_TIMES) return { readiness, at: (askedAt + context.now()) / 2 }
  }
}

function checkReady([name, state]: [string, string]): Finding {
  if (state === 'ok') return { check: name, status: 'ok', detail: 'ready' }
  return { check: name, status: 'fail', detail: state, remedy: 'See the log of the service.' }
}

function checkClock({ time }: Readiness, now: number): Finding {
  if (time === null) return { check: 'clock', status: 'skip', detail: 'the service does not tell the time' }
  // The header has whole seconds, cut off: on average half of one is missing.
  const skewMs = Math.abs(time.getTime() + 500 - now)
  if (skewMs < SKEW_WARN_MS) return { check: 'clock', status: 'ok', detail: 'agrees with that of the service' }
  const detail = `${Math.round(skewMs / 1000)} s off from that of the service`
  return { check: 'clock', status: 'warn', detail, remedy: 'Synchronise both clocks with NTP.' }
}

async function* checkToken(context: Context): AsyncGenerator<Finding, void, undefined> {
  const check = 'token'
  try {
    const client = context.client()
    const own = await client.tokens.own({ signal: context.io.signal, ...PROBE })
    yield { check, status: 'ok', detail: describeToken(own, context.now()) }
    yield await checkChain(context, client)
  } catch (error) {
    context.io.signal.throwIfAborted()
    const remedy = 'Set GAMEKEEPER_TOKEN or --token-file to a token that "gamekeeper token create" has made.'
    yield { check, status: 'fail', detail: (error as Error).message, remedy }
  }
}

function describeToken({ name, scopes, servers, expiresAt }: OwnToken, now: number): string {
  const reach = servers === '*' ? 'all servers' : nameServers(servers)
  const held = allows(scopes, '*') ? 'every scope' : scopes.join(', ')
  return `"${name}" has ${held} on ${reach}${expiresAt === null ? '' : `, and expires ${formatAgo(expiresAt, now)}`}`
}

function nameServers(servers: readonly { name: string }[]): string {
  if (servers.length === 0 || servers.length > 5) return `${servers.length} servers`
  return servers.map(({ name }) => `"${name}"`).join(', ')
}

async function checkChain(context: Context, client: Client): Promise<Finding> {
  const check = 'activity'
  try {
    const { intact, entries, fault } = await client.activity.verifyEverything({ signal: context.io.signal })
    if (intact) return { check, status: 'ok', detail: `${entries} entries, not tampered with` }
    const remedy = 'Find out who can write to the database. "gamekeeper activity verify" says more.'
    return { check, status: 'fail', detail: `an entry was ${fault?.kind}`, remedy }
  } catch (error) {
    if (!isApiError(error, 'forbidden', 'not_found')) throw error
    return { check, status: 'skip', detail: 'the token may not verify all of it' }
  }
}

export const doctor: Family = { main }
