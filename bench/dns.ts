// Queries a second of the embedded server and of pdns_server on the same zone, in the same run, by the same load.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createEmbeddedDns } from '../src/dns/embedded/provider.ts'
import { createZoneFiles } from '../src/dns/embedded/zonefile.ts'
import { formatData } from '../src/dns/presentation.ts'
import type { Change } from '../src/dns/provider.ts'
import { askAuthority } from '../src/dns/resolve.ts'
import { temporaryDirectory } from '../test/support/daemons.ts'
import { startPowerDns } from '../test/support/powerdns.ts'
import { startTestService } from '../test/support/service.ts'

const ZONE = 'bench.test'
const NAMES = 500
const ROUNDS = 5
const QUERIES = 60_000
const CREATED = 50
const LEAST_RATIO = 0.3

interface Contender {
  name: string
  port: number
  pid: number
}

interface Measured {
  perSecond: number
  lost: number
  /** What the server itself spends, which the speed of the load generator does not hide. */
  cpuMicrosPerQuery: number
  /** Share of one core that the load generator used: near 1, it was the bottleneck. */
  loadBusy: number
}

/** Whether the embedded server keeps up. */
export async function run(): Promise<boolean> {
  const directory = temporaryDirectory('bench-dns')
  const pdns = await startPowerDns()
  const embedded = await startEmbedded(directory.path)
  let holds = false
  try {
    await pdns.createZone(ZONE, records().map(toApi))
    const contenders = [
      { name: 'embedded', port: embedded.port, pid: embedded.pid },
      { name: 'pdns_server', port: pdns.dns.port, pid: pdns.pid },
    ]
    holds = report(await race(contenders)) >= LEAST_RATIO
  } finally {
    await embedded.stop()
    await pdns.stop()
    directory.remove()
  }
  await createdToAnswered()
  await createdByRequest()
  return holds
}

/** An address and a service for each name: 1,000 names in all. */
function records(): Change[] {
  return Array.from({ length: NAMES }, (_, index): Change[] => [
    { name: `s${index}.${ZONE}`, type: 'A', ttl: 60, records: [{ address: `192.0.2.${index % 250}` }] },
    {
      name: `_minecraft._tcp.s${index}.${ZONE}`,
      type: 'SRV',
      ttl: 60,
      records: [{ priority: 0, weight: 0, port: 25_565, target: `s${index}.${ZONE}` }],
    },
  ]).flat()
}

function toApi({ name, type, ttl, records: data }: Change) {
  const contents = data.map((record) => ({ content: formatData(type, record), disabled: false }))
  return { name: `${name}.`, type, ttl, records: contents }
}

async function startEmbedded(directory: string) {
  const recordSets = records()
  await createZoneFiles(directory).save({ zone: ZONE, serial: 1, recordSets })
  const script = new URL('./support/dns-embedded.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [script, ZONE, directory], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(createInterface(child.stdout), 'line')
  return {
    port: Number(/listening on (\d+)/.exec(line)?.[1]),
    pid: child.pid ?? 0,
    async stop() {
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** Rounds take turns, so that whatever else the machine does falls on both; the first of each warms up and is not counted. */
async function race(contenders: Contender[]): Promise<Map<string, Measured[]>> {
  const results = new Map<string, Measured[]>(contenders.map(({ name }) => [name, []]))
  for (let round = 0; round <= ROUNDS; round++) {
    for (const contender of contenders) {
      const measured = await measure(contender)
      if (round > 0) results.get(contender.name)?.push(measured)
    }
  }
  return results
}

async function measure({ port, pid }: Contender): Promise<Measured> {
  const script = new URL('./support/dns-load.ts', import.meta.url).pathname
  const asked = records().map(({ name, type }) => `${name}/${type}`)
  const before = cpuSeconds(pid)
  const { stdout } = await promisify(execFile)(process.execPath, [
    script,
    '127.0.0.1',
    String(port),
    String(QUERIES),
    ...asked,
  ])
  const spent = cpuSeconds(pid) - before
  const { answered, lost, seconds, loadCpuSeconds } = JSON.parse(stdout) as Record<
    'answered' | 'lost' | 'seconds' | 'loadCpuSeconds',
    number
  >
  const cpuMicrosPerQuery = (spent * 1e6) / answered
  return { perSecond: answered / seconds, lost, cpuMicrosPerQuery, loadBusy: loadCpuSeconds / seconds }
}

const TICKS_PER_SECOND = 100

function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** Prints what was measured and answers the ratio. */
function report(results: Map<string, Measured[]>): number {
  const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
  const summaries = [...results].map(([name, rounds]) => {
    const perSecond = median(rounds.map((round) => round.perSecond))
    const cpu = median(rounds.map((round) => round.cpuMicrosPerQuery))
    const busy = Math.round(median(rounds.map((round) => round.loadBusy)) * 100)
    const lost = rounds.reduce((sum, round) => sum + round.lost, 0)
    console.log(
      `dns ${name}: ${Math.round(perSecond)} queries/s, ${cpu.toFixed(1)} µs CPU a query, ${lost} lost, load generator ${busy} % busy`,
    )
    return { perSecond, cpu }
  })
  const [ours, theirs] = summaries
  if (!ours || !theirs) return 0
  const ratio = ours.perSecond / theirs.perSecond
  const byCpu = (theirs.cpu / ours.cpu).toFixed(2)
  console.log(`dns ratio embedded to pdns_server: ${ratio.toFixed(2)} (at least ${LEAST_RATIO}); by CPU ${byCpu}`)
  return ratio
}

/** From the call to the moment when the server answers with the record, asked over DNS; on a zone of this size, on disk. */
async function createdToAnswered(): Promise<void> {
  const directory = temporaryDirectory('bench-dns')
  const store = createZoneFiles(directory.path)
  await store.save({ zone: ZONE, serial: 1, recordSets: records() })
  const dns = await createEmbeddedDns({ zones: [{ zone: ZONE }], store, host: '127.0.0.1', port: 0 })
  const times: number[] = []
  for (let index = 0; index < CREATED; index++) {
    const started = performance.now()
    const name = `new${index}.${ZONE}`
    await dns.apply(ZONE, [{ name, type: 'A', ttl: 60, records: [{ address: '192.0.2.1' }] }])
    const { recordSet } = await askAuthority(dns, name, 'A')
    if (!recordSet) throw new Error('applied and not answered')
    times.push(performance.now() - started)
  }
  await dns.close()
  directory.remove()
  console.log(`dns created to answered, embedded, ${NAMES * 2} names: ${spread(times)}`)
}

/** The same through the HTTP API of the running service: from sending the request to the answer over DNS. */
async function createdByRequest(): Promise<void> {
  const zones = [{ zone: ZONE, provider: 'embedded', target: '192.0.2.1' }]
  await using service = await startTestService({
    env: { GAMEKEEPER_ZONES: JSON.stringify(zones), GAMEKEEPER_DNS_HOST: '127.0.0.1', GAMEKEEPER_DNS_PORT: '0' },
  })
  const { dns } = service
  if (!dns) throw new Error('the service has no DNS server')
  const { id } = await service.createServer({ game: 'minecraft-java', port: 25_566 })
  const times: number[] = []
  for (let index = 0; index < CREATED; index++) {
    const name = `new${index}`
    const started = performance.now()
    const { status } = await service.call('POST', `/subdomains/${id}/subdomains`, { body: { name, zone: ZONE } })
    if (status !== 201) throw new Error(`answered ${status}`)
    while ((await askAuthority(dns, `_minecraft._tcp.${name}.${ZONE}`, 'SRV')).recordSet === null) await delay(1)
    times.push(performance.now() - started)
  }
  console.log(`dns created by POST to answered, embedded, ${CREATED} names: ${spread(times)}`)
}

function spread(times: number[]): string {
  times.sort((a, b) => a - b)
  const at = (share: number) => (times[Math.floor(times.length * share)] ?? Number.NaN).toFixed(1)
  return `median ${at(0.5)} ms, 95th ${at(0.95)} ms`
}

if (import.meta.main) await run()
