// Networks that misbehave on command: a TCP proxy that cuts its connections, and an HTTP server that answers by script.
import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingHttpHeaders } from 'node:http'
import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from 'node:net'
import { reset } from '../../src/kit/reset.ts'

export interface Proxy {
  url: string
  /** Breaks every connection that is open now. */
  cut(): void
  /** Stops passing bytes on over the connections that are open now, without a word to either side. */
  freeze(): void
  [Symbol.asyncDispose](): Promise<void>
}

/** A target that is a function is asked for every connection: what it leads to may come later, or move. */
export async function startProxy(
  targetUrl: string | (() => string),
  /** Told how many bytes have passed in all, in both directions. */
  onBytes: (total: number) => void = () => {},
): Promise<Proxy> {
  const open = new Set<Socket>()
  let passed = 0
  const server = createServer((near) => {
    const target = new URL(typeof targetUrl === 'string' ? targetUrl : targetUrl())
    const far = dial(Number(target.port), target.hostname)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        open.delete(from)
        to.destroy()
      })
      from.on('data', (chunk: Buffer) => {
        passed += chunk.length
        onBytes(passed)
      })
      from.pipe(to)
    }
  })
  const cut = () => {
    for (const socket of open) reset(socket)
  }
  const url = await listen(server)
  return {
    url,
    cut,
    freeze() {
      for (const socket of open) socket.unpipe().pause()
    },
    async [Symbol.asyncDispose]() {
      cut()
      server.close()
      await once(server, 'close')
    },
  }
}

export interface Seen {
  method: string
  url: string
  headers: IncomingHttpHeaders
  body: string
  at: number
}

/** `cut` breaks the connection without an answer, `half` in the middle of one; `never` leaves it open without one. */
export type Scripted = 'cut' | 'half' | 'never' | { status: number; headers?: Record<string, string>; body?: unknown }

export interface ScriptedServer {
  url: string
  seen: Seen[]
  [Symbol.asyncDispose](): Promise<void>
}

/** Answers by the script, and with the last line of it from then on. */
export async function startScripted(script: readonly Scripted[]): Promise<ScriptedServer> {
  const seen: Seen[] = []
  const server = createHttpServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const line = script[Math.min(seen.length, script.length - 1)] ?? 'cut'
    seen.push({
      method: request.method ?? '',
      url: request.url ?? '',
      headers: request.headers,
      body: Buffer.concat(chunks).toString(),
      at: performance.now(),
    })
    if (line === 'never') return
    if (line === 'cut') return reset(request.socket)
    if (line === 'half') {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' })
      return response.write('{"data":', () => reset(request.socket))
    }
    const text = typeof line.body === 'string' ? line.body : JSON.stringify(line.body ?? {})
    const type = line.status < 400 ? 'application/json' : 'application/problem+json'
    response.writeHead(line.status, { 'content-type': type, ...line.headers }).end(text)
  })
  const url = await listen(server)
  return {
    url,
    seen,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
