// The Docker Engine API on a socket, as far as games need it; Podman speaks it too. Loaded on first use: a service without
// containers does not pay for it.
import { existsSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type Docker from 'dockerode'
import { type Failure, fail } from '../../../contract/errors.ts'
import { hasCode } from '../../../kit/files/errno.ts'

export type ContainerOptions = Docker.ContainerCreateOptions
export type EngineInfo = Pick<
  EngineAnswer,
  'MemoryLimit' | 'SwapLimit' | 'CpuCfsQuota' | 'PidsLimit' | 'SecurityOptions'
>
interface EngineAnswer {
  MemoryLimit?: boolean
  SwapLimit?: boolean
  CpuCfsQuota?: boolean
  PidsLimit?: boolean
  SecurityOptions?: string[]
}

export interface ContainerState {
  id: string
  /** On this machine, where the engine is; 0 where it does not run. */
  pid: number
  /** Whether that is an init of the engine's, with the game as its child. */
  hasInit: boolean
  status: 'created' | 'running' | 'ended'
  exitCode: number
  isOutOfMemory: boolean
  endedAt: number
}

export interface Engine {
  info(withinMs?: number): Promise<EngineInfo>
  hasImage(image: string): Promise<boolean>
  /** `told` gets what it does, for people. */
  pull(image: string, told: (step: string) => void, signal: AbortSignal): Promise<void>
  create(name: string, options: ContainerOptions): Promise<void>
  start(name: string): Promise<void>
  /** Undefined where there is none. */
  inspect(name: string, withinMs?: number): Promise<ContainerState | undefined>
  /** Resolves once it does not run. */
  wait(name: string, signal: AbortSignal): Promise<void>
  signal(name: string, signal: NodeJS.Signals): Promise<void>
  /** Ends it where it runs. One that is not there is a success. */
  remove(name: string): Promise<void>
  /** Names of all that have the label, whatever they do. */
  list(label: string): Promise<string[]>
}

/** Where engines listen by default. */
const SOCKETS = ['/var/run/docker.sock', '/run/podman/podman.sock']
const ANSWERS_WITHIN_MS = 120_000

/** Undefined where nothing says where an engine is, and none is where they usually are. */
export function findSocket(configured: string | null, ownUser = process.getuid?.()): string | undefined {
  if (configured !== null) return configured
  return [...SOCKETS, `/run/user/${ownUser}/podman/podman.sock`, `/run/user/${ownUser}/docker.sock`].find(existsSync)
}

export function createEngine(configured: string | null): Engine {
  let made: Promise<Docker> | undefined

  async function connect(): Promise<Docker> {
    const socketPath = findSocket(configured)
    if (socketPath === undefined) {
      made = undefined
      throw noEngine('no socket of an engine was found. Set GAMEKEEPER_CONTAINER_SOCKET')
    }
    const { default: Engine } = await import('dockerode')
    // Nothing of it is read from the environment.
    return new Engine({ socketPath, host: undefined, port: undefined, protocol: 'http', timeout: undefined } as object)
  }
  const docker = () => (made ??= connect())

  async function ask<T>(work: (docker: Docker) => Promise<T>): Promise<T> {
    try {
      return await work(await docker())
    } catch (error) {
      throw explained(error)
    }
  }

  /** For what takes a moment: an engine that ends in the middle of an answer would never be heard of again. */
  function askSoon<T>(work: (docker: Docker) => Promise<T>, withinMs = ANSWERS_WITHIN_MS): Promise<T> {
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => late.reject(noEngine('it does not answer')), withinMs)
    return Promise.race([ask(work), late.promise]).finally(() => clearTimeout(timer))
  }

  return {
    info: (withinMs) => askSoon((engine) => engine.info() as Promise<EngineInfo>, withinMs),
    hasImage: (image) =>
      orIfAbsent(
        askSoon((engine) => engine.getImage(image).inspect()).then(() => true),
        false,
      ),
    pull: (image, told, signal) => ask((engine) => pull(engine, image, told, signal)),
    create: (name, options) => askSoon(async (engine) => void (await engine.createContainer({ name, ...options }))),
    start: (name) => askSoon((engine) => engine.getContainer(name).start()),
    inspect: (name, withinMs) =>
      orIfAbsent(
        askSoon((engine) => inspect(engine, name), withinMs),
        undefined,
      ),
    wait: (name, signal) =>
      orIfAbsent(
        ask((engine) => wait(engine, name, signal)),
        undefined,
      ),
    signal: (name, signal) => askSoon((engine) => engine.getContainer(name).kill({ signal })),
    remove: (name) =>
      orIfAbsent(
        askSoon((engine) => engine.getContainer(name).remove({ force: true, v: true })),
        undefined,
      ),
    list: (label) =>
      askSoon(async (engine) => {
        const found = await engine.listContainers({ all: true, filters: { label: [label] } })
        return found.map(({ Id }) => Id)
      }),
  }
}

/** As a stream: whether the answer was cut off is to be known. */
async function wait(engine: Docker, name: string, abortSignal: AbortSignal): Promise<void> {
  const path = `/containers/${encodeURIComponent(name)}/wait`
  const answer = await new Promise<Readable>((resolve, reject) =>
    engine.modem.dial(
      { path, method: 'POST', isStream: true, abortSignal, statusCodes: { 200: true, 404: 'no such container' } },
      (error, stream) => (error ? reject(error as Error) : resolve(stream as Readable)),
    ),
  )
  await text(answer)
}

async function inspect(engine: Docker, name: string): Promise<ContainerState> {
  const { Id, State, HostConfig } = await engine.getContainer(name).inspect()
  // Podman: `initialized` before it runs, `stopped` as soon as it does not.
  const isNew = State.Status === 'created' || (State.Status as string) === 'initialized'
  return {
    id: Id,
    pid: State.Running ? State.Pid : 0,
    hasInit: HostConfig?.Init === true,
    status: State.Running || State.Paused ? 'running' : isNew ? 'created' : 'ended',
    exitCode: State.ExitCode,
    isOutOfMemory: State.OOMKilled === true,
    endedAt: Math.max(0, Date.parse(State.FinishedAt)) || Date.now(),
  }
}

interface PullEvent {
  id?: string
  status?: string
  error?: string
  progressDetail?: { current?: number; total?: number }
}

async function pull(engine: Docker, image: string, told: (step: string) => void, signal: AbortSignal): Promise<void> {
  const stream = (await engine.pull(image, { abortSignal: signal } as object)) as NodeJS.ReadableStream & {
    destroy(error?: Error): void
  }
  const cut = () => stream.destroy(new Error('the pull was cut off'))
  signal.addEventListener('abort', cut, { once: true })
  const layers = new Map<string, { current: number; total: number }>()
  try {
    await new Promise<void>((resolve, reject) => {
      const ended = (error: Error | null, events: PullEvent[]) => {
        const fault = error?.message ?? events?.find((event) => event.error)?.error
        return fault ? reject(new Error(fault)) : resolve()
      }
      engine.modem.followProgress(stream, ended, (event: PullEvent) => {
        const { current = 0, total = 0 } = event.progressDetail ?? {}
        if (event.id && total > 0) layers.set(event.id, { current, total })
        told(describePull(image, [...layers.values()]))
      })
    })
  } finally {
    signal.removeEventListener('abort', cut)
  }
}

function describePull(image: string, layers: readonly { current: number; total: number }[]): string {
  const total = layers.reduce((sum, layer) => sum + layer.total, 0)
  const current = layers.reduce((sum, layer) => sum + layer.current, 0)
  return total === 0 ? `pulling ${image}` : `pulling ${image}: ${Math.floor((100 * current) / total)} %`
}

interface EngineAnswered extends Error {
  statusCode?: number
  json?: { message?: string } | null
}

const noEngine = (why: string, cause?: unknown) =>
  fail('isolation_missing', `There is no container engine: ${why}.`, cause)

/** Nobody answers on the socket, or it is not ours to use. */
export const isUnreachable = (error: unknown): boolean =>
  error instanceof Error && (error as Failure).code === 'isolation_missing'

function explained(error: unknown): unknown {
  if (hasCode(error, 'ENOENT', 'ECONNREFUSED')) return noEngine('nothing answers on its socket. Start it', error)
  if (hasCode(error, 'EACCES', 'EPERM'))
    return noEngine('its socket is not ours to use. Add our user to its group', error)
  if (hasCode(error, 'ECONNRESET', 'EPIPE')) return noEngine('it went away', error)
  return error
}

/** What the engine said, for people: the first line, without anything that is no text. */
export function saidByEngine(error: unknown): string {
  const { json, message } = error as EngineAnswered
  const [line = ''] = (json?.message ?? message ?? 'unknown').split('\n')
  return line.replace(/[^\x20-\x7e]/g, ' ').slice(0, 500)
}

async function orIfAbsent<T>(answer: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await answer
  } catch (error) {
    if ((error as EngineAnswered).statusCode === 404) return otherwise
    throw error
  }
}
