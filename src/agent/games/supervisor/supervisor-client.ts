// The service's end of the line to a supervisor: starts one, or finds one that an earlier service has started.
import { spawn } from 'node:child_process'
import { getCompileCacheDir } from 'node:module'
import { connect, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openDescriptor } from '../../../kit/files/descriptor.ts'
import { moduleBeside } from '../../../kit/module-beside.ts'
import { mayBeAlive, statOrThrow } from '../process-identity.ts'
import {
  createMessageReader,
  type Message,
  NO_WORD,
  type OwnershipAnswer,
  type Preparation,
  type Request,
  type RunRecord,
  type RunStatus,
  SOCKET,
  type StartAnswer,
  type SupervisorInput,
  type SupervisorOrder,
  uptimeMs,
} from './protocol.ts'

const PROGRAM = fileURLToPath(moduleBeside(import.meta.url, 'supervisor'))
/** It does next to nothing: a small heap, and no threads that help with a large one (`docs/decisions/supervisors.md`). */
const NODE_FLAGS = ['--max-old-space-size=48', '--max-semi-space-size=1', '--v8-pool-size=0']
const REPLY_WITHIN_MS = 5000

/** Of the data directory, seen from the folder of a game: one for all supervisors. */
const COMPILED_FOLDER = '../../../compiled'

/** Nothing of the service's, but for where compiled modules are kept: it starts in a third of the time with them. */
function environment(folder: string): Record<string, string> {
  const compiled = getCompileCacheDir()
  return { NODE_COMPILE_CACHE: compiled === undefined ? join(folder, COMPILED_FOLDER) : dirname(compiled) }
}

/** A supervisor that has not been told yet what to start. It ends by itself if nobody does, also when we end. */
export interface WaitingSupervisor extends Disposable {
  /** True also where there is no descriptor left to look with. */
  mayBeAlive(): boolean
  /** At most once, before `begin`. */
  prepare(preparation: Preparation): void
  /** Once `prepare` has asked; false where there is no answer. */
  isOwner(): Promise<boolean>
  /** Resolves once the game of this folder has been started, or could not be. The supervisor stays whatever becomes of us. */
  begin(folder: string, order: SupervisorOrder): Promise<StartAnswer>
}

/** `folder`: of any game. */
export function spawnSupervisor(folder: string): WaitingSupervisor {
  const child = spawn(process.execPath, [...NODE_FLAGS, PROGRAM], {
    cwd: '/',
    detached: true,
    env: environment(folder),
    stdio: ['pipe', 'ignore', 'ignore', 'pipe'],
  })
  const failed = new Promise<StartAnswer>((resolve) => {
    child.once('error', ({ message }) => resolve({ started: false, code: NO_WORD, message }))
  })
  child.stdin?.on('error', () => {})
  // Without a descriptor to spare, `spawn` gives back a child that has no pipes at all, and says why later.
  const answerPipe = child.stdio?.[3] as Socket | undefined
  // One that waits keeps nobody from ending.
  const pipes = answerPipe ? [child.stdin as Socket, answerPipe] : []
  child.unref()
  for (const pipe of pipes) pipe.unref()
  const answers = answerPipe ? readAnswers(answerPipe) : { said: failed, isOwner: Promise.resolve(false) }
  /** Then its number may be another's. */
  const hasExited = () => child.exitCode !== null || child.signalCode !== null
  let isPrepared = false
  function prepare(preparation: Preparation): void {
    isPrepared = true
    child.stdin?.write(`${JSON.stringify(preparation)}\n`)
  }
  const wait = () => {
    for (const pipe of pipes) pipe.ref()
  }
  return {
    mayBeAlive: () => child.pid !== undefined && !hasExited() && mayRun(child.pid),
    prepare,
    isOwner() {
      wait()
      return answers.isOwner
    },
    begin(folder, order) {
      if (!isPrepared) prepare({ groups: [], ownership: null })
      wait()
      child.stdin?.end(JSON.stringify({ folder, order } satisfies SupervisorInput))
      return Promise.race([answers.said, failed])
    },
    [Symbol.dispose]: () => void child.stdin?.end(),
  }
}

/** Of a child of ours, so that nobody else has its number. */
function mayRun(pid: number): boolean {
  try {
    return statOrThrow(pid) !== undefined
  } catch {
    return true
  }
}

/** Never fails. */
function readAnswers(pipe: Socket): { said: Promise<StartAnswer>; isOwner: Promise<boolean> } {
  const said = Promise.withResolvers<StartAnswer>()
  const owner = Promise.withResolvers<boolean>()
  const read = createMessageReader<StartAnswer | OwnershipAnswer>((answer) => {
    if ('isOwner' in answer) owner.resolve(answer.isOwner)
    else said.resolve(answer)
  })
  pipe.setEncoding('utf8')
  pipe.on('data', read)
  pipe.on('error', () => {})
  pipe.once('close', () => {
    owner.resolve(false)
    said.resolve({ started: false, code: NO_WORD, message: 'its supervisor ended' })
  })
  return { said: said.promise, isOwner: owner.promise }
}

export interface SupervisorLine {
  status(): RunStatus
  /** `gone` where the game, or its supervisor, is. */
  ask(request: DistributiveOmit<Request, 'id'>): Promise<'gone' | 'full' | null>
  close(): void
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never

export interface LineEvents {
  /** Something of the status is new. */
  changed(): void
  /** The supervisor is gone, or we have closed the line. */
  closed(): void
}

const ASK_EVERY_MS = 50
const ASK_AT_LEAST_EVERY_MS = 1000

/**
 * The line to a supervisor, as soon as it answers: one that lives and does not, because its disk does not either, is waited for.
 * Undefined once it has ended, or nobody wants it any more.
 */
export async function reachSupervisor(
  folder: string,
  record: Pick<RunRecord, 'runId' | 'supervisor'>,
  events: LineEvents,
  { signal, isOver }: { signal: AbortSignal; isOver(): boolean },
): Promise<SupervisorLine | undefined> {
  let pauseMs = ASK_EVERY_MS
  while (mayBeAlive(record.supervisor) && !signal.aborted && !isOver()) {
    const line = await connectSupervisor(folder, events, signal)
    if (line?.status().runId === record.runId) return line
    line?.close()
    await delay(pauseMs, undefined, { signal }).catch(() => {})
    pauseMs = Math.min(2 * pauseMs, ASK_AT_LEAST_EVERY_MS)
  }
  return undefined
}

/** Undefined where nobody answers. */
async function connectSupervisor(
  folder: string,
  events: LineEvents,
  signal: AbortSignal,
): Promise<SupervisorLine | undefined> {
  const socket = await openSocket(folder)
  if (!socket) return undefined
  const giveUp = () => socket.destroy()
  signal.addEventListener('abort', giveUp, { once: true })
  if (signal.aborted) giveUp()
  const waiting = new Map<number, (error: 'gone' | 'full' | null) => void>()
  const first = Promise.withResolvers<RunStatus | undefined>()
  let status: RunStatus | undefined
  let lastId = 0

  const take = createMessageReader<Message>((message) => {
    if ('reply' in message) return waiting.get(message.reply)?.(message.error)
    if ('status' in message) status = message.status
    else if (status) status.tail = message.tail
    first.resolve(status)
    events.changed()
  })
  socket.setEncoding('utf8')
  socket.on('data', (chunk: string) => {
    try {
      take(chunk)
    } catch {
      socket.destroy()
    }
  })
  socket.once('close', () => {
    for (const resolve of waiting.values()) resolve('gone')
    first.resolve(undefined)
    events.closed()
  })
  const greeting = await first.promise
  signal.removeEventListener('abort', giveUp)
  if (!greeting) return undefined
  // Games run on without us: they keep nobody from ending.
  socket.unref()
  return {
    status: () => status ?? greeting,
    async ask(request) {
      if (socket.destroyed || !socket.writable) return 'gone'
      const id = ++lastId
      const reply = new Promise<'gone' | 'full' | null>((resolve) => waiting.set(id, resolve))
      const tooLong = setTimeout(() => waiting.get(id)?.('full'), REPLY_WITHIN_MS)
      const limit = request.op === 'input' ? { notAfter: uptimeMs() + REPLY_WITHIN_MS } : {}
      socket.write(`${JSON.stringify({ ...limit, ...request, id })}\n`)
      return await reply.finally(() => {
        clearTimeout(tooLong)
        waiting.delete(id)
      })
    },
    close: () => socket.destroy(),
  }
}

/** By a descriptor of the folder: an address of a socket has room for a hundred characters, a path for forty times that. */
async function openSocket(folder: string): Promise<Socket | undefined> {
  using directory = openDescriptor(folder, 'r')
  const socket = connect(join('/proc/self/fd', String(directory.fd), SOCKET))
  return await new Promise((resolve) => {
    socket.once('connect', () => resolve(socket))
    socket.once('error', () => resolve(undefined))
  }).then((opened) => {
    socket.on('error', () => socket.destroy())
    return opened as Socket | undefined
  })
}
