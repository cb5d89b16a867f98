// What bubblewrap says of itself on a descriptor of its own, in lines of JSON: the process that leads the game's own world once it has
// made one, and the exit code of the game where that has begun. Without the one nothing was made; without the other it failed
// before the game began.
import type { ChildProcess } from 'node:child_process'
import type { Readable } from 'node:stream'
import { INFO_FD, NOT_ISOLATED } from './protocol.ts'

const SAID_MAX_CHARS = 1000

export interface BubblewrapStatus {
  /** Told once. */
  onPid(tell: (pid: number) => void): void
  /** After its end: it could not make a world for the game. Not where a signal ended it. */
  hasRefused(signal: NodeJS.Signals | null): boolean
  refusal(): NodeJS.ErrnoException
  /** After its end. */
  hasBegun(signal: NodeJS.Signals | null): boolean
}

export function hearBubblewrap(child: ChildProcess): BubblewrapStatus {
  let text = ''
  let said = ''
  let tell: ((pid: number) => void) | undefined
  const find = (name: string) => new RegExp(`"${name}":\\s*(\\d+)`).exec(text)?.[1]
  const pipe = child.stdio[INFO_FD] as Readable
  pipe.setEncoding('utf8')
  pipe.on('error', () => {})
  pipe.on('data', (chunk: string) => {
    text = (text + chunk).slice(0, SAID_MAX_CHARS)
    const pid = Number(find('child-pid'))
    if (!text.includes('\n') || !(pid > 0)) return
    tell?.(pid)
    tell = undefined
  })
  // Until there is a game, it is bubblewrap that complains.
  child.stderr?.on('data', (chunk: Buffer) => {
    if (said.length < SAID_MAX_CHARS) said += chunk.toString('utf8')
  })
  return {
    onPid(listener) {
      tell = listener
    },
    hasRefused: (signal) => signal === null && find('child-pid') === undefined,
    refusal: () =>
      Object.assign(new Error(said.trim().split('\n').at(-1) || 'it said nothing'), { code: NOT_ISOLATED }),
    hasBegun: (signal) => signal !== null || find('exit-code') !== undefined,
  }
}
