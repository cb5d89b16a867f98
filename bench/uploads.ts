// How fast 2 GiB come in by a form and by tus, held against a bare node:http server that pipes the same body to a file,
// and how much memory it takes, also with 50 uploads at once. Servers and client are processes of their own; they take
// turns in the same run. Ours syncs every file to the disk before it answers; the bare server does not.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createSignedLinks } from '../src/http/signed-links.ts'
import { newId } from '../src/kit/ids.ts'
import { median, peakBytes, restartPeak } from './measure.ts'
import type { Sending } from './support/upload-client.ts'

const MIB = 1024 ** 2
const GIB = 1024 ** 3
const serverId = 'srv_bench'
const BEFORE = '--x\r\nContent-Disposition: form-data; name="files"; filename="big.bin"\r\n\r\n'
const AFTER = '\r\n--x--\r\n'
const FORM_TYPE = 'multipart/form-data; boundary=x'

export interface UploadResult {
  name: string
  value: number
  limit: string
  isMet: boolean
}

interface Server {
  child: ChildProcess
  port: number
  key: string
  folder: string
}

export async function run(options: { bytes?: number; rounds?: number; atOnce?: number } = {}): Promise<UploadResult[]> {
  const { bytes = 2 * GIB, rounds = 3, atOnce = 50 } = options
  const base = mkdtempSync(join(process.env.GAMEKEEPER_BENCH_DIR ?? tmpdir(), 'gamekeeper-bench-'))
  const children: ChildProcess[] = []
  try {
    const bare = await startServer('bare', join(base, 'bare'), children)
    const agent = await startServer('agent', join(base, 'agent'), children)
    const client = fork(new URL('./support/upload-client.ts', import.meta.url))
    children.push(client)
    // What starting up took for a moment is not what an idle service has.
    restartPeak(agent.child.pid ?? 0)
    const idle = memory(agent)
    const times = { bareForm: [] as number[], form: [] as number[], bareTus: [] as number[], tus: [] as number[] }
    for (let round = 0; round < rounds; round++) {
      times.bareForm.push(await timed(client, bare, [toBare(bare, formBody(bytes))]))
      times.form.push(await timed(client, agent, [{ ...formBody(bytes), url: await uploadUrl(agent) }]))
      times.bareTus.push(await timed(client, bare, [toBare(bare, tusBody(bytes))]))
      times.tus.push(await timed(client, agent, [{ ...tusBody(bytes), url: await tusUrl(agent, bytes) }]))
    }
    const one = memory(agent) - idle
    restartPeak(agent.child.pid ?? 0)
    const before = memory(agent)
    const share = Math.floor(bytes / atOnce)
    const many = Array.from({ length: atOnce }, async () => ({ ...formBody(share), url: await uploadUrl(agent) }))
    await timed(client, agent, await Promise.all(many))
    const together = Math.max(memory(agent) - before, memory(agent) - idle)
    return report(bytes, atOnce, times, one, together)
  } finally {
    for (const child of children) {
      child.kill()
      await once(child, 'exit')
    }
    rmSync(base, { recursive: true, force: true })
  }
}

function report(
  bytes: number,
  atOnce: number,
  times: Record<'bareForm' | 'form' | 'bareTus' | 'tus', number[]>,
  one: number,
  together: number,
): UploadResult[] {
  const speed = (ms: number[]) => bytes / MIB / (median(ms) / 1000)
  const ratio = (ours: number[], theirs: number[]) => median(theirs) / median(ours)
  for (const [name, ms] of Object.entries(times)) console.log(`     ${name}: ${speed(ms).toFixed(0)} MiB/s`)
  const results = [
    result('form, of the speed of a bare server', ratio(times.form, times.bareForm), 0.6, 'at least'),
    result('tus, of the speed of a bare server', ratio(times.tus, times.bareTus), 0.7, 'at least'),
    result('memory for one upload, MiB', one / MIB, 64, 'less than'),
    result(`memory for ${atOnce} uploads at once, MiB`, together / MIB, 64, 'less than'),
  ]
  for (const { name, value, limit, isMet } of results)
    console.log(`${isMet ? 'ok  ' : 'MISS'} ${name}: ${value.toFixed(2)} (${limit})`)
  return results
}

function result(name: string, value: number, bound: number, kind: 'at least' | 'less than'): UploadResult {
  return { name, value, limit: `${kind} ${bound}`, isMet: kind === 'at least' ? value >= bound : value < bound }
}

async function startServer(kind: 'agent' | 'bare', folder: string, children: ChildProcess[]): Promise<Server> {
  const child = fork(new URL('./support/upload-server.ts', import.meta.url), [kind, folder, serverId])
  children.push(child)
  const [{ port, key = '' }] = (await once(child, 'message')) as [{ port: number; key?: string }]
  return { child, port, key, folder }
}

const formBody = (bytes: number) => ({
  method: 'POST',
  headers: { 'content-type': FORM_TYPE },
  before: BEFORE,
  after: AFTER,
  bytes,
})

const tusBody = (bytes: number) => ({
  method: 'PATCH',
  headers: { 'tus-resumable': '1.0.0', 'upload-offset': '0', 'content-type': 'application/offset+octet-stream' },
  before: '',
  after: '',
  bytes,
})

const toBare = ({ port }: Server, body: Omit<Sending, 'url'>): Sending => ({
  ...body,
  url: `http://127.0.0.1:${port}/`,
})

async function uploadUrl({ port, key }: Server): Promise<string> {
  const links = createSignedLinks(Buffer.from(key, 'hex'), { now: Date.now })
  const detail = { uploadId: newId('upl'), maxBytes: 100 * GIB }
  const grant = { serverId, tokenId: 'tok_bench', tokenExpiresAt: null, requestId: 'req_bench', detail }
  const link = await links.sign('upload', grant, 900_000)
  return `http://127.0.0.1:${port}/v1/game/uploads/${link}`
}

async function tusUrl(server: Server, bytes: number): Promise<string> {
  const url = await uploadUrl(server)
  const metadata = `filename ${Buffer.from('tus.bin').toString('base64')}`
  const headers = { 'tus-resumable': '1.0.0', 'upload-length': String(bytes), 'upload-metadata': metadata }
  // On a connection of its own: one that was kept may be over by now, and deleting 2 GiB keeps us from hearing of it.
  const request = httpRequest(url, { method: 'POST', headers, agent: false }).end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.resume()
  return new URL(response.headers.location ?? '', url).href
}

/** Every round begins with nothing on the disk, and with nothing still to be written to it. */
async function timed(client: ChildProcess, server: Server, sendings: Sending[]): Promise<number> {
  client.send(sendings)
  const [answer] = (await once(client, 'message')) as [{ ms: number; error?: string }]
  if (answer.error) throw new Error(answer.error)
  const folders = server.key
    ? [join(server.folder, 'servers', serverId, 'files'), join(server.folder, 'servers', serverId, 'trash')]
    : [server.folder]
  for (const folder of folders)
    for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true })
  return answer.ms
}

const memory = ({ child }: Server) => peakBytes(child.pid ?? 0)

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href)
  process.exitCode = (await run()).every(({ isMet }) => isMet) ? 0 : 1
