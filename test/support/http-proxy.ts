// A proxy before a real HTTP API that can be told to misbehave, by a word that occurs in the path.
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { listeningPort } from './daemons.ts'

export type Fault =
  /** The connection breaks. */
  | { kind: 'down' }
  /** No answer while the fault lasts. */
  | { kind: 'silent' }
  | { kind: 'status'; status: number; headers?: Record<string, string> }
  /** Whatever would change something is answered with success and not passed on. */
  | { kind: 'lies' }
  /** Changes are passed on and the connection breaks before the answer. */
  | { kind: 'deaf' }

export interface FaultyProxy {
  url: string
  /** Every request so far as `METHOD path`. */
  requests: string[]
  /** For requests with this word in their path; null ends the fault. */
  set(word: string, fault: Fault | null): void
  stop(): Promise<void>
}

export async function startFaultyProxy(target: string): Promise<FaultyProxy> {
  const faults = new Map<string, Fault>()
  const held = new Map<string, Set<IncomingMessage>>()
  const requests: string[] = []

  function pass(incoming: IncomingMessage, outgoing: ServerResponse, deaf: boolean): void {
    const { method, url, headers } = incoming
    const forward = request(new URL(url ?? '/', target), { method, headers }, (answer) => {
      if (deaf) {
        answer.resume().on('end', () => incoming.socket.destroy())
        return
      }
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    forward.on('error', () => incoming.socket.destroy())
    incoming.pipe(forward)
  }

  const server = createServer((incoming, outgoing) => {
    requests.push(`${incoming.method} ${incoming.url}`)
    const [word, fault] = [...faults].find(([part]) => incoming.url?.includes(part)) ?? []
    const changes = incoming.method !== 'GET'
    if (!fault || word === undefined) return pass(incoming, outgoing, false)
    if (fault.kind === 'down') return void incoming.socket.destroy()
    if (fault.kind === 'silent') return void (held.get(word) ?? held.set(word, new Set()).get(word))?.add(incoming)
    if (fault.kind === 'status') return void outgoing.writeHead(fault.status, fault.headers).end('{}')
    if (fault.kind === 'lies' && changes) return void outgoing.writeHead(204).end()
    pass(incoming, outgoing, fault.kind === 'deaf' && changes)
  }).listen(0, '127.0.0.1')
  const port = await listeningPort(server)
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    set(word, fault) {
      if (fault) faults.set(word, fault)
      else faults.delete(word)
      for (const incoming of held.get(word) ?? []) incoming.socket.destroy()
      held.delete(word)
    },
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
