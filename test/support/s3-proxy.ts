// A proxy before a real S3 server that does what such servers do wrong, on command.
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { reset } from '../../src/kit/reset.ts'
import { listeningPort } from './daemons.ts'

export type S3Trouble =
  /** An answer of its own, as S3 writes it, after all of the request has come. */
  | { kind: 'answer'; status: number; code?: string; headers?: Record<string, string>; body?: string }
  /** The connection breaks after so many bytes of the request, or where it ends. */
  | { kind: 'cut-request'; afterBytes: number }
  /** The request is passed on, and the connection breaks after so many bytes of the answer. */
  | { kind: 'cut-answer'; afterBytes: number }
  /** Nothing more is read after so many bytes of the request, nor is it answered. */
  | { kind: 'stall-request'; afterBytes: number }
  /** The request is passed on, and after so many bytes of the answer nothing more comes. */
  | { kind: 'stall-answer'; afterBytes: number }
  /** The answer comes with other headers or other bytes. */
  | { kind: 'change-answer'; headers?: Record<string, string>; bytes?: (bytes: Buffer) => Buffer }
  /** The request is passed on, and this is done before its answer is given back. */
  | { kind: 'before-answer'; work: (status: number) => Promise<void> | void }

export interface S3Seen {
  method: string
  url: string
  headers: IncomingHttpHeaders
}

export interface S3Proxy {
  url: string
  /** Every request so far. */
  seen: S3Seen[]
  /** Asked for each request; by default nothing goes wrong. */
  trouble: (seen: S3Seen) => S3Trouble | undefined
  /** Whatever is under way breaks off. */
  cutAll(): void
  stop(): Promise<void>
}

export async function startS3Proxy(target: string): Promise<S3Proxy> {
  const server = createServer((incoming, outgoing) => {
    const seen = { method: incoming.method ?? '', url: incoming.url ?? '', headers: incoming.headers }
    proxy.seen.push(seen)
    incoming.on('error', () => {})
    outgoing.on('error', () => {})
    const trouble = proxy.trouble(seen)
    if (trouble?.kind === 'answer') return void answerAfter(incoming, outgoing, trouble)
    if (trouble?.kind === 'cut-request') return void watch(incoming, trouble.afterBytes, () => reset(incoming.socket))
    if (trouble?.kind === 'stall-request') return void watch(incoming, trouble.afterBytes, () => incoming.pause())
    pass(target, incoming, outgoing, trouble)
  }).listen(0, '127.0.0.1')
  const proxy: S3Proxy = {
    url: `http://127.0.0.1:${await listeningPort(server)}`,
    seen: [],
    trouble: () => undefined,
    cutAll: () => server.closeAllConnections(),
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return proxy
}

/** The same trouble for the first so many of the requests that it is meant for. */
export function firstly(
  times: number,
  isMeant: (seen: S3Seen) => boolean,
  trouble: S3Trouble,
): (seen: S3Seen) => S3Trouble | undefined {
  let left = times
  return (seen) => (isMeant(seen) && left-- > 0 ? trouble : undefined)
}

async function answerAfter(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { status, code, headers = {}, body }: Extract<S3Trouble, { kind: 'answer' }>,
): Promise<void> {
  await incoming.toArray().catch(() => {})
  const xml = code === undefined ? '' : `<?xml version="1.0"?><Error><Code>${code}</Code><Message>No.</Message></Error>`
  outgoing
    .writeHead(status, { 'content-type': 'application/xml', ...headers })
    .end(incoming.method === 'HEAD' ? '' : (body ?? xml))
}

function watch(incoming: IncomingMessage, bytes: number, then: () => void): void {
  let passed = 0
  incoming.on('data', (chunk: Buffer) => {
    passed += chunk.length
    if (passed >= bytes) then()
  })
  incoming.on('end', then)
  if (bytes === 0) then()
}

function pass(
  target: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  trouble: S3Trouble | undefined,
): void {
  const { method, url, headers } = incoming
  // With the host of the client, which its signature names.
  const forward = request(new URL(url ?? '/', target), { method, headers }, (answer) => {
    const breakOff = () => incoming.socket.destroy()
    answer.on('error', breakOff)
    giveBack(answer, incoming, outgoing, trouble).catch(breakOff)
  })
  forward.on('error', () => incoming.socket.destroy())
  incoming.on('close', () => {
    // The server hears of it, too.
    if (!incoming.complete) forward.destroy()
  })
  incoming.pipe(forward)
}

async function giveBack(
  answer: IncomingMessage,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  trouble: S3Trouble | undefined,
): Promise<void> {
  const status = answer.statusCode ?? 502
  if (trouble?.kind === 'before-answer') await trouble.work(status)
  if (!trouble || trouble.kind === 'before-answer') {
    outgoing.writeHead(status, answer.headers)
    return void answer.pipe(outgoing)
  }
  const bytes = Buffer.concat(await answer.toArray())
  if (trouble.kind === 'change-answer') {
    outgoing.writeHead(status, { ...answer.headers, ...trouble.headers })
    return void outgoing.end(trouble.bytes ? trouble.bytes(bytes) : bytes)
  }
  const afterBytes = 'afterBytes' in trouble ? trouble.afterBytes : 0
  const end = () => (trouble.kind === 'cut-answer' ? reset(incoming.socket) : undefined)
  if (afterBytes === 0) return void end()
  outgoing.writeHead(status, answer.headers)
  outgoing.write(bytes.subarray(0, afterBytes), end)
}
