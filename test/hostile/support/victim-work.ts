// What the tenant next door does all day, on a thread of its own: what the attack costs the process that plays it must not
// look like a slow service. It comes from an address of its own too.
import { randomBytes } from 'node:crypto'
import { Agent, request as httpRequest } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import type { Change, VictimOrder, VictimReport, VictimSetup } from './victim.ts'

const ADDRESS = '127.0.0.2'
/** Below the rate limit that counts by default, however quick the answers. */
const PAUSE_MS = 15
const CYCLES_BEFORE = 6
const CYCLES_AT_LEAST = 4
const FILES_KEPT = 12
const BACKUPS_KEPT = 3
const BACKUP_EVERY_MS = 1500
const GIVE_UP_MS = 60_000
const FAULTS_MAX = 10

interface Answer {
  status: number
  requestId: string
  bytes: Buffer
}

const { url, token, serverId } = workerData as VictimSetup
const port = parentPort as NonNullable<typeof parentPort>
const kept = new Agent({ keepAlive: true, maxSockets: 1 })
const report: VictimReport = { before: [], during: [], faults: [], changes: [], files: [], backups: [] }
const files = new Map<string, Buffer>()
let isUnderAttack = false
let isOver = false

class Refused extends Error {}

function exchange(method: string, path: string, body: Buffer | undefined, isFresh: boolean): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const isJson = method !== 'PUT' && body !== undefined
    const headers = {
      authorization: `Bearer ${token}`,
      ...(body ? { 'content-length': body.length } : {}),
      ...(isJson ? { 'content-type': 'application/json' } : {}),
    }
    const options = { method, headers, localAddress: ADDRESS, agent: isFresh ? false : kept }
    const sent = httpRequest(`${url}/v1/game${path}`, options, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject)
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          requestId: String(response.headers['x-request-id']),
          bytes: Buffer.concat(chunks),
        }),
      )
    })
    sent.setTimeout(GIVE_UP_MS, () => sent.destroy(new Error(`no answer within ${GIVE_UP_MS} ms`)))
    sent.on('error', reject).end(body)
  })
}

/** Every second request comes over a connection of its own: whoever arrives late must get in too. */
let requests = 0
async function ask(method: string, path: string, body?: object | Buffer): Promise<Answer> {
  await delay(PAUSE_MS)
  const bytes = body === undefined || Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body))
  const startedAt = performance.now()
  let answer: Answer
  try {
    answer = await exchange(method, path, bytes, ++requests % 2 === 0)
  } catch (error) {
    throw new Refused(`${method} ${path}: ${(error as Error).message}`)
  }
  const timings = isUnderAttack ? report.during : report.before
  timings.push({ what: `${method} ${path.split('?', 1)[0]?.split('/')[1]}`, ms: performance.now() - startedAt })
  if (answer.status >= 300) throw new Refused(`${method} ${path}: ${answer.status} ${answer.bytes}`)
  return answer
}

async function change(event: string, method: string, path: string, body?: object | Buffer): Promise<Answer> {
  const answer = await ask(method, path, body)
  report.changes.push({ event, requestId: answer.requestId } satisfies Change)
  return answer
}

const json = ({ bytes }: Answer) => JSON.parse(bytes.toString())
const contentOf = (path: string) => `/files/${serverId}/content?path=${encodeURIComponent(path)}`

async function workOnFiles(cycle: number): Promise<void> {
  const content = randomBytes(1 + ((cycle * 997) % 9000))
  const [written, room] = [`/world/${cycle}.bin`, `r${cycle % 5}`]
  await change('file.written', 'PUT', contentOf(written), content)
  files.set(written, content)
  if (!(await ask('GET', contentOf(written))).bytes.equals(content)) fault(`${written} does not read as it was written`)
  const listed = json(await ask('GET', `/files/${serverId}?path=/world`)).data as { path: string; sizeBytes: number }[]
  if (listed.find(({ path }) => path === written)?.sizeBytes !== content.length) fault(`${written} is not listed right`)
  const made = await ask('POST', `/files/${serverId}/folder`, { path: '/rooms', name: room })
  // One that is there already is no change.
  if (made.status === 201) report.changes.push({ event: 'file.folder_created', requestId: made.requestId })
  const moved = `/rooms/${room}/${cycle}.bin`
  await change('file.moved', 'POST', `/files/${serverId}/move`, { moves: [{ from: written, to: moved }] })
  files.delete(written)
  files.set(moved, content)
  const [oldest = ''] = files.keys()
  if (files.size <= FILES_KEPT) return
  const read = await ask('GET', contentOf(oldest))
  if (!read.bytes.equals(files.get(oldest) as Buffer)) fault(`${oldest} has changed`)
  await change('file.deleted', 'DELETE', `/files/${serverId}`, { files: [oldest] })
  files.delete(oldest)
}

async function backUp(): Promise<void> {
  const { id } = json(await change('backup.started', 'POST', `/backups/${serverId}`, {}))
  for (;;) {
    const { status, error } = json(await ask('GET', `/backups/${serverId}/${id}`))
    if (status === 'failed') throw new Refused(`a backup failed: ${JSON.stringify(error)}`)
    if (status === 'completed') break
  }
  report.backups.push({ id, files: [...files] })
  const oldest = report.backups.length > BACKUPS_KEPT ? report.backups.shift() : undefined
  if (oldest) await change('backup.deleted', 'DELETE', `/backups/${serverId}/${oldest.id}`)
}

function fault(sentence: string): void {
  if (report.faults.length < FAULTS_MAX) report.faults.push(sentence)
}

port.on('message', (order: VictimOrder) => {
  if (order === 'attacked') isUnderAttack = true
  else isOver = true
})

/** What an attack before this one has left. */
async function clear(): Promise<void> {
  const left = (json(await ask('GET', `/files/${serverId}`)).data as { path: string }[]).map(({ path }) => path)
  if (left.length > 0) await change('file.deleted', 'DELETE', `/files/${serverId}`, { files: left })
}

try {
  await clear()
  let nextBackupAt = 0
  for (let cycle = 0, during = 0; !isOver || during < CYCLES_AT_LEAST; cycle++) {
    await workOnFiles(cycle)
    if (performance.now() >= nextBackupAt) {
      await backUp()
      nextBackupAt = performance.now() + BACKUP_EVERY_MS
    }
    if (cycle === CYCLES_BEFORE) port.postMessage('warm')
    if (isUnderAttack) during++
  }
} catch (error) {
  if (!(error instanceof Refused)) throw error
  fault(error.message)
}
kept.destroy()
report.files = [...files]
port.postMessage(report)
port.close()
