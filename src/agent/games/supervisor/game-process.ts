// The game itself: started, heard, told, and seen to its end.
import { type ChildProcess, spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { identify, type ProcessIdentity, signalGroup } from '../process-identity.ts'
import { countOutOfMemory, insideGroups, killGroups } from './cgroup-entry.ts'
import { killAllOf } from './left-behind.ts'
import type { SupervisorOrder } from './protocol.ts'

/** How long those that a game has left behind may hold its output open after it has ended. */
const LINGER_MS = 1000

export interface GameEnd {
  code: number | null
  signal: NodeJS.Signals | null
  isOutOfMemory: boolean
}

export interface GameProcess {
  /** The leader of its group, once that is known. */
  leader(): ProcessIdentity | null
  /** False where it has ended, or has not read what it was sent before. */
  input(text: string): 'gone' | 'full' | null
  signal(signal: NodeJS.Signals): boolean
}

export interface GameEvents {
  started(): void
  failed(error: NodeJS.ErrnoException): void
  output(source: 'stdout' | 'stderr', chunk: Buffer): void
  /** After the last output. */
  ended(end: GameEnd): void
}

export function startGame(order: SupervisorOrder, inputMaxBytes: number, events: GameEvents): GameProcess {
  const { command, user, cgroups } = order
  const child = insideGroups(cgroups, () =>
    spawn(command.file, command.args, {
      cwd: command.cwd,
      env: { ...command.environment },
      stdio: order.isBubblewrap ? ['pipe', 'pipe', 'pipe', 'pipe'] : ['pipe', 'pipe', 'pipe'],
      detached: true,
    }),
  )
  let leader: ProcessIdentity | null = null
  let hasEnded = false
  const announce = () => {
    if (!hasEnded && leader) events.started()
  }

  child.once('error', events.failed)
  child.once('spawn', () => {
    if (order.isBubblewrap) {
      onInnerProcess(child, (pid) => {
        leader = identify(pid) ?? null
        announce()
      })
    } else {
      leader = identify(child.pid as number) ?? null
      announce()
    }
  })
  child.stdout?.on('data', (chunk: Buffer) => events.output('stdout', chunk))
  child.stderr?.on('data', (chunk: Buffer) => events.output('stderr', chunk))
  // A game may end, or close its input, while something is on its way to it.
  child.stdin?.on('error', () => {})
  child.once('exit', (code, signal) => {
    hasEnded = true
    const leftBehind = () => {
      killGroups(cgroups)
      if (leader && !order.isBubblewrap) killLeftBehind(leader.pid)
      if (user !== null) killAllOf(user)
    }
    leftBehind()
    const linger = setTimeout(() => {
      child.stdout?.destroy()
      child.stderr?.destroy()
    }, LINGER_MS)
    child.once('close', () => {
      clearTimeout(linger)
      const end = order.isBubblewrap ? unwrapped(code, signal) : { code, signal }
      events.ended({ ...end, isOutOfMemory: end.signal === 'SIGKILL' && countOutOfMemory(cgroups) > 0 })
    })
  })

  return {
    leader: () => leader,
    input(text) {
      if (hasEnded || !child.stdin?.writable) return 'gone'
      if (child.stdin.writableLength > inputMaxBytes) return 'full'
      child.stdin.write(text)
      return null
    },
    signal(signal) {
      if (hasEnded) return false
      if (signal === 'SIGKILL') killGroups(cgroups)
      // Before bubblewrap has told of it there is nothing in it yet.
      return leader ? signalGroup(leader, signal) : child.kill('SIGKILL')
    },
  }
}

/** bubblewrap says which process is the first of the game's own world, in JSON. */
function onInnerProcess(child: ChildProcess, tell: (pid: number) => void): void {
  let text = ''
  const pipe = child.stdio[3] as Readable
  pipe.setEncoding('utf8')
  pipe.on('error', () => {})
  pipe.on('data', (chunk: string) => {
    text += chunk
  })
  pipe.once('close', () => {
    const pid = Number(/"child-pid":\s*(\d+)/.exec(text)?.[1])
    if (pid > 0) tell(pid)
  })
}

/** The number of a group is not given out again while it has members, so what has it now is the game's. */
function killLeftBehind(group: number): void {
  try {
    process.kill(-group, 'SIGKILL')
  } catch {
    // Nothing was left.
  }
}

const SIGNALS: Readonly<Record<number, NodeJS.Signals>> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  3: 'SIGQUIT',
  4: 'SIGILL',
  6: 'SIGABRT',
  7: 'SIGBUS',
  8: 'SIGFPE',
  9: 'SIGKILL',
  11: 'SIGSEGV',
  13: 'SIGPIPE',
  15: 'SIGTERM',
  24: 'SIGXCPU',
  25: 'SIGXFSZ',
}

/** bubblewrap ends with 128 and the number of the signal that ended the game. */
function unwrapped(code: number | null, signal: NodeJS.Signals | null): Pick<GameEnd, 'code' | 'signal'> {
  const inner = code !== null && code > 128 ? SIGNALS[code - 128] : undefined
  return inner ? { code: null, signal: inner } : { code, signal }
}
