// A game that runs elsewhere, with pipes in a folder as its input and output. It has them open for reading and writing itself,
// so it neither notices that its supervisor is gone nor loses what it wrote meanwhile: that waits in the pipe.
import { constants, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Descriptor, openDescriptor } from '../../../kit/files/descriptor.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import type { GameEvents, GameProcess } from './game-process.ts'
import type { GameEnd } from './protocol.ts'

const CHUNK_BYTES = 64 * 1024
const RETRY_MS = 20
/** How long something may hold the output open after the game has ended. */
const LINGER_MS = 1000
/** Of a pipe, rather than of a place in a file. */
const NO_POSITION = -1

export interface PipedGame extends Pick<GameProcess, 'input'> {
  /** Reads what it says from now on. False where that has begun, or it has ended. */
  begin(): boolean
  /** It has ended: what it wrote last is read, then its end is told. */
  end(end: GameEnd): Promise<void>
}

export function holdPipes(
  folder: string,
  inputMaxBytes: number,
  events: Pick<GameEvents, 'output' | 'ended'>,
): PipedGame {
  using opened = new DisposableStack()
  const open = (name: string, flags: number) => opened.use(openDescriptor(join(folder, name), flags))
  const stdin = open('in', constants.O_RDWR | constants.O_NONBLOCK)
  // While nobody writes, a reader would find the end of the pipe.
  const writers = ['out', 'err'].map((name) => open(name, constants.O_RDWR))
  // Now rather than when the game begins, as nobody could be told then.
  const stdout = open('out', constants.O_RDONLY)
  const stderr = open('err', constants.O_RDONLY)
  opened.move()
  let reading: Promise<unknown> | undefined
  let unsent = Buffer.alloc(0)
  let sending: NodeJS.Timeout | undefined
  let hasEnded = false

  function send(): void {
    sending = undefined
    if (hasEnded) return
    unsent = unsent.subarray(writeSome(stdin, unsent))
    if (unsent.length > 0) sending = setTimeout(send, RETRY_MS)
  }

  return {
    begin() {
      if (reading || hasEnded) return false
      reading = Promise.all([
        readPipe(stdout, (chunk) => events.output('stdout', chunk)),
        readPipe(stderr, (chunk) => events.output('stderr', chunk)),
      ])
      return true
    },
    input(text) {
      if (hasEnded) return 'gone'
      if (unsent.length > inputMaxBytes) return 'full'
      unsent = Buffer.concat([unsent, Buffer.from(text)])
      if (!sending) send()
      return null
    },
    async end(end) {
      if (hasEnded) return
      hasEnded = true
      clearTimeout(sending)
      for (const pipe of [stdin, ...writers, ...(reading ? [] : [stdout, stderr])]) pipe[Symbol.dispose]()
      await Promise.race([reading, delay(LINGER_MS)])
      events.ended(end)
    },
  }
}

/** Takes the pipe over. In a thread that waits for it: a game is read no faster than its lines can be written. */
async function readPipe(taken: Descriptor, output: (chunk: Buffer) => void): Promise<void> {
  using pipe = taken
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  for (;;) {
    const bytes = await pipe.read(buffer, 0, CHUNK_BYTES, NO_POSITION)
    if (bytes === 0) return
    output(buffer.subarray(0, bytes))
  }
}

/** How much of it the pipe has taken. */
function writeSome(pipe: Descriptor, bytes: Buffer): number {
  try {
    return writeSync(pipe.fd, bytes)
  } catch (error) {
    if (hasCode(error, 'EAGAIN')) return 0
    throw error
  }
}
