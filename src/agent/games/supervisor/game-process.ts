// The game itself: started, heard, told, and seen to its end.
import { spawn } from 'node:child_process'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { identify, mayBeAlive, type ProcessIdentity, signalGroup } from '../process-identity.ts'
import { hearBubblewrap } from './bubblewrap-status.ts'
import { countOutOfMemory, killGroups, leaveGroups } from './cgroup-entry.ts'
import { endOfCode } from './exit-codes.ts'
import { killAllOf, killGroupOf, killLeader, untilGone } from './left-behind.ts'
import { ENVIRONMENT_FD, type GameEnd, INFO_FD, type ProcessOrder } from './protocol.ts'

/** How long those that a game has left behind may hold its output open after it has ended. */
const LINGER_MS = 1000
const LOOK_EVERY_MS = 100

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

/** Of a supervisor that is in the game's groups. */
export function startGame(order: ProcessOrder, inputMaxBytes: number, events: GameEvents): GameProcess {
  const { command, user, cgroups } = order
  const child = spawn(command.file, command.args, {
    cwd: command.cwd,
    env: {},
    stdio: Array.from({ length: order.isBubblewrap ? INFO_FD + 1 : ENVIRONMENT_FD + 1 }, () => 'pipe' as const),
    detached: true,
  })
  const environment = child.stdio[ENVIRONMENT_FD] as Duplex | undefined
  // What ends before it was read is heard of as the end of the game.
  environment?.on('error', () => {})
  environment?.resume()
  // The game waits for it, and to leave the groups takes a while.
  environment?.end(order.environment)
  leaveGroups(cgroups)
  let leader: ProcessIdentity | null = null
  let hasEnded = false
  const announce = () => {
    if (!hasEnded && leader) events.started()
  }

  child.once('error', events.failed)
  const inner = order.isBubblewrap ? hearBubblewrap(child) : undefined
  child.once('spawn', () => {
    if (inner) {
      inner.onPid((pid) => {
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
  // `once` would fail where the child does, and nobody would hear of it.
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  child.once('exit', async (code, signal) => {
    // A machine that shuts down tells every process to end: bubblewrap does at once, while the game saves.
    // One that ends by itself does so because the game has, whomever that has left behind.
    if (order.isBubblewrap && signal !== null) while (leader && mayBeAlive(leader)) await delay(LOOK_EVERY_MS)
    hasEnded = true
    const kills = [() => killGroups(cgroups)]
    // The first process of bubblewrap's namespace goes after all others in it.
    if (leader) kills.push(order.isBubblewrap ? killLeader(leader) : killGroupOf(leader))
    if (user !== null) kills.push(killAllOf(user))
    await untilGone(kills)
    const linger = setTimeout(() => {
      child.stdout?.destroy()
      child.stderr?.destroy()
    }, LINGER_MS)
    await closed
    clearTimeout(linger)
    if (inner?.hasRefused(signal)) return events.failed(inner.refusal())
    const end = inner ? endOfCode(code, signal) : { code, signal }
    const isOutOfMemory = end.signal === 'SIGKILL' && countOutOfMemory(cgroups) > 0
    events.ended({ ...end, isOutOfMemory, ...(inner ? { hasBegun: inner.hasBegun(signal) } : {}) })
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
