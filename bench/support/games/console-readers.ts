// Many who follow one console, in a process of their own. All but one throw away what they get; the one breaks off and resumes
// from the last line that it has, and counts what it misses.
import { get, type IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

export interface ReadersOrder {
  url: string
  serverId: string
  tokens: string[]
  readers: number
}

export interface ReadersReport {
  /** That those got who throw them away. */
  lines: number
  dropped: number
  /** Of the one who resumes. */
  resumed: number
  checked: number
  missed: number
}

const BREAK_EVERY_MS = 700
const GIVE_UP_MS = 120_000
const report: ReadersReport = { lines: 0, dropped: 0, resumed: 0, checked: 0, missed: 0 }
let position = 0
const following: IncomingMessage[] = []

function open({ url, serverId, tokens }: ReadersOrder, index: number, lastId?: number): Promise<IncomingMessage> {
  const headers = {
    accept: 'text/event-stream',
    authorization: `Bearer ${tokens[index % tokens.length]}`,
    ...(lastId === undefined ? {} : { 'last-event-id': String(lastId) }),
  }
  return new Promise((resolve, reject) => {
    get(`${url}/v1/game/servers/${serverId}/console`, { headers, agent: false }, (response) => {
      if (response.statusCode === 200) resolve(response)
      else reject(new Error(`answered ${response.statusCode}`))
    }).once('error', reject)
  })
}

const EVENT = Buffer.from('\nevent: ')

async function discard(order: ReadersOrder, index: number): Promise<void> {
  const response = await open(order, index)
  following.push(response)
  response.on('data', (chunk: Buffer) => {
    for (let at = chunk.indexOf(EVENT); at >= 0; at = chunk.indexOf(EVENT, at + EVENT.length)) report.lines++
  })
  response.on('error', () => {})
  response.once('close', () => report.dropped++)
}

/** Until it is at the line, or for too long. */
async function check(order: ReadersOrder, until: () => number): Promise<void> {
  const deadline = performance.now() + GIVE_UP_MS
  while (position < until() && performance.now() < deadline) {
    const response = await open(order, order.readers, position)
    const over = setTimeout(() => response.destroy(), BREAK_EVERY_MS)
    await takeAll(response)
    clearTimeout(over)
    report.resumed++
    await delay(10)
  }
}

async function takeAll(response: IncomingMessage): Promise<void> {
  let text = ''
  try {
    for await (const chunk of response.setEncoding('utf8')) {
      text += chunk
      const events = text.split('\n\n')
      text = events.pop() ?? ''
      for (const event of events) take(event)
    }
  } catch {
    // Broken off: an event that had not ended is not taken.
  }
}

function take(event: string): void {
  const [, id] = /^id: (\d+)$/m.exec(event) ?? []
  if (id === undefined) return
  report.missed += Math.max(0, Number(id) - position - 1)
  report.checked++
  position = Number(id)
}

async function main(order: ReadersOrder): Promise<void> {
  const first = await fetch(`${order.url}/v1/game/servers/${order.serverId}/console?limit=1`, {
    headers: { authorization: `Bearer ${order.tokens[0]}` },
  })
  const { data } = (await first.json()) as { data: { line: number }[] }
  position = data[0]?.line ?? 0
  for (let index = 0; index < order.readers; index++) await discard(order, index)
  let lastLine = Number.POSITIVE_INFINITY
  const checking = check(order, () => lastLine)
  process.on('message', async (message: { lastLine: number }) => {
    const atTheEnd = { ...report }
    lastLine = message.lastLine
    // The flood is over: what they have not read is of no use to anybody.
    for (const response of following) response.destroy()
    await checking
    process.send?.({ ...report, lines: atTheEnd.lines, dropped: atTheEnd.dropped })
  })
  process.send?.('ready')
}

process.once('message', (order: ReadersOrder) => void main(order))
