// Tells a game to hold its world still, over its console or a connection, and waits until it says that it does.
import type { Quiesce, RemoteAccess } from '../../contract/games/launch.ts'
import type { Watchers } from '../../kit/waiting/watchers.ts'
import type { ConsoleTail } from './console/console-tail.ts'
import { createLineMatcher } from './console/line-pattern.ts'
import { openRemoteConsole, RemoteFault } from './remote-console/index.ts'
import type { Run } from './runtime.ts'

const POLL_EVERY_MS = 1000
/** Of what lets the game go on: it is waited for before the game is stopped. */
const TOLD_WITHIN_MS = 5000

export interface StillnessRequest {
  serverId: string
  run: Pick<Run, 'tail' | 'input'>
  quiesce: Quiesce
  console: ConsoleTail
  lines: Watchers
  /** False once a stop has ended the hold, or the run is over: then nothing more is sent. */
  isHeld(): boolean
  /** A command is about to go out: from now on the game may hold its world still. */
  sending(): void
  signal: AbortSignal
}

/** Null once the game has said that its world is still, else why it is not. Fails only with the reason of the signal. */
export function askForStillness(request: StillnessRequest): Promise<string | null> {
  request.signal.throwIfAborted()
  const { remote } = request.quiesce
  return remote ? askRemotely(request, remote) : askByConsole(request)
}

async function askByConsole({
  serverId,
  run,
  quiesce,
  isHeld,
  sending,
  signal,
  ...place
}: StillnessRequest): Promise<string | null> {
  const { before, isStill, poll = null, timeoutSeconds } = quiesce
  const deadline = performance.now() + timeoutSeconds * 1000
  using news = place.lines.watch(serverId)
  const answer = createAnswerFinder(place.console, run.tail(), { after: before.at(-1), isStill })
  sending()
  for (const command of before) {
    if (!isHeld()) return ENDED_MEANWHILE
    if ((await run.input(command)) !== null) return NOT_READ
  }
  if (isStill === null) return NO_PATTERN
  for (;;) {
    if (!isHeld()) return ENDED_MEANWHILE
    if (poll !== null && (await run.input(poll)) !== null) return NOT_READ
    const pollAt = poll === null ? deadline : Math.min(deadline, performance.now() + POLL_EVERY_MS)
    do {
      if (await answer.find(signal, deadline)) return null
      if (!isHeld()) return ENDED_MEANWHILE
      await news.wait(Math.max(0, pollAt - performance.now()), signal)
      signal.throwIfAborted()
    } while (performance.now() < pollAt)
    if (performance.now() >= deadline) return noAnswer(timeoutSeconds)
  }
}

/** Looks for the answer among the lines that the game has written since it was sent the last command. */
function createAnswerFinder(
  console: ConsoleTail,
  from: number,
  { after, isStill }: { after: string | undefined; isStill: Quiesce['isStill'] },
) {
  const pattern = createLineMatcher(isStill === null ? [] : [isStill].flat())
  let position = from
  let isSent = after === undefined
  return {
    /** However much the game writes, it ends with the deadline. */
    async find(signal: AbortSignal, deadline: number): Promise<boolean> {
      for (let lines = await console.after(position); lines.length > 0; lines = await console.after(position)) {
        signal.throwIfAborted()
        for (const { line, source, text } of lines) {
          position = line
          if (source === 'command') isSent ||= text === after
          else if (isSent && source !== 'gamekeeper' && pattern.matches(Buffer.from(text))) return true
        }
        if (performance.now() > deadline) return false
      }
      return false
    },
  }
}

async function askRemotely(
  { quiesce, isHeld, sending, signal }: StillnessRequest,
  remote: RemoteAccess,
): Promise<string | null> {
  const { before, isStill, timeoutSeconds } = quiesce
  const late = AbortSignal.timeout(timeoutSeconds * 1000)
  try {
    using console = await openRemoteConsole(remote, AbortSignal.any([signal, late]))
    sending()
    for (const command of before) {
      if (!isHeld()) return ENDED_MEANWHILE
      console.heard.forget()
      await console.send(command)
    }
    if (isStill === null) return NO_PATTERN
    const still = console.heard.until(createLineMatcher([isStill].flat()))
    const { poll = null } = quiesce
    await pollUntil(still, async () => void (poll !== null && isHeld() && (await console.send(poll))))
    return isHeld() ? null : ENDED_MEANWHILE
  } catch (error) {
    signal.throwIfAborted()
    if (late.aborted) return noAnswer(timeoutSeconds)
    if (error instanceof RemoteFault) return notTaken(remote.via, error.message)
    throw error
  }
}

async function pollUntil(still: Promise<void>, poll: () => Promise<void>): Promise<void> {
  let isStill = false
  const seen = still.then(() => {
    isStill = true
  })
  while (!isStill) {
    await Promise.race([seen, poll()])
    if (isStill) return
    const { promise: pause, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, POLL_EVERY_MS)
    await Promise.race([seen, pause]).finally(() => clearTimeout(timer))
  }
}

/** True once the game has answered each of the commands. */
export async function tellRemotely(remote: RemoteAccess, commands: readonly string[]): Promise<boolean> {
  try {
    using console = await openRemoteConsole(remote, AbortSignal.timeout(TOLD_WITHIN_MS))
    for (const command of commands) await console.send(command)
    return true
  } catch (error) {
    if (error instanceof RemoteFault) return false
    throw error
  }
}

export const WRITING = 'The game could write its files while they were read'
const NO_PATTERN = `${WRITING}: its template does not say by which line the game tells that its world is still.`
export const ENDED_MEANWHILE = `${WRITING}: it was stopped, or ended, while it was to hold its world still.`
export const NOT_READ = `${WRITING}: it does not read its console, so it could not be told to hold its world still.`
const noAnswer = (seconds: number) =>
  `${WRITING}: it was told to hold its world still, and did not say within ${seconds} s that it does.`
const WAYS = { rcon: 'over RCON', management: 'by the management protocol' }
export const notTaken = (via: RemoteAccess['via'], why: string) =>
  `${WRITING}: it could not be told ${WAYS[via]} to hold its world still: ${why}.`
