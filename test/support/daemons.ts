// Starting real servers for a test: a temporary directory, a port that the system picks, and an end by their own id.
import { type ChildProcess, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export function temporaryDirectory(name: string, base = tmpdir()): { path: string; remove(): void } {
  const path = mkdtempSync(join(base, `gamekeeper-${name}-`))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** Free for TCP and for UDP, at least a moment ago: for servers that cannot pick a port themselves. */
export async function freePort(): Promise<number> {
  for (;;) {
    const server = createServer().listen(0, '127.0.0.1')
    const port = await listeningPort(server)
    const alsoUdp = await isFreeForUdp(port)
    server.close()
    await once(server, 'close')
    if (alsoUdp) return port
  }
}

async function isFreeForUdp(port: number): Promise<boolean> {
  const socket = createSocket('udp4')
  const outcome = Promise.race([once(socket, 'listening').then(() => true), once(socket, 'error').then(() => false)])
  socket.bind(port, '127.0.0.1')
  const free = await outcome.catch(() => false)
  socket.close()
  return free
}

export async function listeningPort(server: Server): Promise<number> {
  if (!server.listening) await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

export interface Daemon {
  pid: number
  stop(): Promise<void>
}

/** Resolves once a line of the server's output says that it is ready. */
export async function startDaemon(command: string, args: string[], ready: RegExp): Promise<Daemon> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  await untilSaid(child, command, ready)
  return {
    pid: child.pid ?? 0,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    },
  }
}

function untilSaid(child: ChildProcess, command: string, ready: RegExp): Promise<void> {
  let log = ''
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', () => reject(new Error(`${command} did not start: ${log}`)))
    const read = (chunk: Buffer) => {
      if (log.length < 64_000) log += chunk
      if (ready.test(log)) resolve()
    }
    child.stdout?.on('data', read)
    child.stderr?.on('data', read)
  })
}

/** A server that accepts connections and never says a word. */
export async function startSilentServer(): Promise<{ port: number; close(): Promise<void> }> {
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => {})
    socket.on('data', () => {})
  }).listen(0, '127.0.0.1')
  const port = await listeningPort(server)
  return {
    port,
    async close() {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
