// The service as a process of its own, started as a user starts it: for what a process in the test cannot show.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('../../bin/gamekeeper.js', import.meta.url))

export interface ServiceProcess {
  child: ChildProcess
  pid: number
  /** Where it listens; the promise rejects with what it said if it ends before that. */
  url: string
  output(): string
  /** The exit code, or the signal that ended it. */
  exited: Promise<number | NodeJS.Signals>
  kill(signal: NodeJS.Signals): Promise<number | NodeJS.Signals>
}

export interface SpawnOptions {
  /** A module that is loaded into the service before its own code, and that can be sent messages. */
  preload?: string
  /** A command that runs the rest of its line in its own place, such as `prlimit --nofile=80`. */
  under?: readonly string[]
}

export async function spawnService(env: Record<string, string>, options: SpawnOptions = {}): Promise<ServiceProcess> {
  const started = startProcess(env, options)
  const url = await Promise.race([started.listening, started.exited.then(() => undefined)])
  if (url === undefined) throw new Error(`the service did not start: ${started.output()}`)
  // The address is the first thing it says; once it answers it has said everything and hears signals.
  try {
    await (await fetch(`${url}/healthz`)).text()
  } catch (error) {
    const { exitCode, signalCode } = started.child
    const state = `${(error as Error).cause}; its exit is ${exitCode ?? signalCode}`
    throw new Error(`the service at ${url} does not answer: ${state}\n${started.output()}`, { cause: error })
  }
  return { ...started, url }
}

/** For a start that is meant to fail: what it said, and its exit code. */
export async function runService(
  env: Record<string, string>,
  options: SpawnOptions = {},
): Promise<{ code: number | NodeJS.Signals; output: string }> {
  const { exited, output } = startProcess(env, options)
  return { code: await exited, output: output() }
}

const children = new Set<ChildProcess>()

/** For the end of a test file: a test that failed may have left its process. */
export function killLeftovers(): void {
  for (const child of children) child.kill('SIGKILL')
}

/** The environment, apart from what is meant for whoever runs this. */
export const withoutSettings = () =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('GAMEKEEPER_')))

function startProcess(env: Record<string, string>, { preload, under = [] }: SpawnOptions) {
  const line = [...under, process.execPath, ...(preload ? ['--import', preload] : []), MAIN, 'serve']
  const child = spawn(line[0] as string, line.slice(1), {
    env: { ...withoutSettings(), NODE_TEST_CONTEXT: '', GAMEKEEPER_PORT: '0', GAMEKEEPER_LOG_LEVEL: 'fatal', ...env },
    stdio: preload ? ['ignore', 'pipe', 'pipe', 'ipc'] : ['ignore', 'pipe', 'pipe'],
  })
  children.add(child)
  child.once('close', () => children.delete(child))
  let text = ''
  const { promise: listening, resolve } = Promise.withResolvers<string>()
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      text += chunk
      const url = /https?:\/\/[\w.[\]:-]+:\d+/.exec(text)?.[0]
      if (url) resolve(url)
    })
  }
  const exited = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals)
  const kill = (signal: NodeJS.Signals) => {
    child.kill(signal)
    return exited
  }
  return { child, pid: child.pid ?? 0, listening, exited, kill, output: () => text }
}
