// Watches the turns of this thread's event loop, by the processor time that they take and not by the clock, so that a
// busy machine is no false alarm, nor is a rented one of which the host takes a part. A worker thread looks on and asks for
// the stack of a turn that is too long already.
import { subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel'
import { PerformanceObserver } from 'node:perf_hooks'
import { setTimeout as delay, setImmediate as immediate } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'

export const LONGEST_TURN_MS = 100
/** Requests that arrive together begin in one turn, and no more than this of it is due to each of them. */
const REQUEST_MS = 2
const REQUEST_BEGINS = 'http.server.request.start'
/** So do connections, of which the kernel hands over all that wait. */
const CONNECTION_MS = 0.1
const CONNECTION_BEGINS = 'net.server.socket'
/** Of schemas, by the first request that needs them: once in the life of a process. */
const compiling = tracingChannel('gamekeeper.compile')

/** The clock of the watch: a turn is seen with at most this much of the ones before it. */
export const BEAT_MS = 10

/** What the garbage collector took, and the stack, are known a few turns later, however long those take. */
const VERDICT_MS = 3 * BEAT_MS
const VERDICT_TURNS = 3

export interface LongTurn {
  /** Processor time of this thread, without that of the garbage collector, of schemas and of requests that began in it. */
  cpuMs: number
  /** Where it was when it had been too long already. */
  stack: string
}

/** What the watchdog of a service process says, and whoever reads its output looks for. */
export const LONG_TURN = /a turn of the event loop took \d+ ms of processor time/
export const sayLongTurn = ({ cpuMs, stack }: LongTurn) =>
  `watchdog: a turn of the event loop took ${cpuMs} ms of processor time\n${stack}\n`

/** What both threads know, as places of one array. */
export const SHARED = {
  /** Counts beats, so that whoever looks on knows whether a turn has ended. */
  beat: 0,
  /** The beat whose stack was asked for last. */
  asked: 1,
  /** Microseconds since the last beat that are no fault of the turn. */
  excusedUs: 2,
  /** 1 while the main thread is asked, and until what piled up meanwhile is done: no other turn is asked for then. */
  disturbed: 3,
}

/** What the onlooker tells of a turn that was too long, once it has ended. */
export interface Seen {
  beat: number
  stack: string
  turnMs: number
}

export interface TurnWatch extends Disposable {
  /** Resolves when the watch looks on. What a turn before that took does not count. */
  ready: Promise<void>
  /** Those so far, the turn in which it is called included. */
  longTurns(): Promise<readonly LongTurn[]>
}

const cpuMs = () => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

export function watchTurns(onLongTurn: (turn: LongTurn) => void = () => {}): TurnWatch {
  const found: LongTurn[] = []
  const shared = new Int32Array(new SharedArrayBuffer(4 * Object.keys(SHARED).length))
  shared[SHARED.asked] = -1
  const onlooker = new Worker(new URL('./turns-onlooker.ts', import.meta.url), {
    workerData: { shared, pid: process.pid },
    execArgv: [],
  })
  onlooker.unref()
  const stacks = new Map<number, Seen>()
  const ready = new Promise<void>((resolve) => {
    onlooker.once('message', () => resolve())
  })
  onlooker.on('message', (seen: 'ready' | Seen) => {
    if (seen !== 'ready') stacks.set(seen.beat, seen)
  })
  let collectedMs = 0
  const collector = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) collectedMs += duration
  })
  collector.observe({ entryTypes: ['gc'] })
  const excuse = (ms: number) => void Atomics.add(shared, SHARED.excusedUs, Math.ceil(ms * 1000))
  const countRequest = () => excuse(REQUEST_MS)
  const countConnection = () => excuse(CONNECTION_MS)
  let compilingSince = 0
  const compilation = {
    start() {
      compilingSince = cpuMs()
    },
    end: () => excuse(cpuMs() - compilingSince),
    asyncStart() {},
    asyncEnd() {},
    error() {},
  }
  compiling.subscribe(compilation)
  subscribe(REQUEST_BEGINS, countRequest)
  subscribe(CONNECTION_BEGINS, countConnection)

  const isAsked = (number: number) => Atomics.load(shared, SHARED.asked) === number

  function beat(): void {
    Atomics.store(shared, SHARED.excusedUs, 0)
    const number = Atomics.add(shared, SHARED.beat, 1)
    if (isAsked(number)) judge(number)
    else collectedMs = 0
  }

  function judge(number: number): void {
    setTimeout(async () => {
      for (let turn = 0; turn < VERDICT_TURNS; turn++) await immediate()
      while (!stacks.has(number)) await delay(BEAT_MS, undefined, { ref: false })
      const { stack = '', turnMs = 0 } = stacks.get(number) ?? {}
      const cpuMs = Math.round(turnMs - collectedMs)
      collectedMs = 0
      stacks.clear()
      if (cpuMs <= LONGEST_TURN_MS) return
      found.push({ cpuMs, stack })
      onLongTurn({ cpuMs, stack })
    }, VERDICT_MS).unref()
  }

  const timer = setInterval(beat, BEAT_MS).unref()
  return {
    ready,
    async longTurns() {
      await delay(VERDICT_MS + 2 * BEAT_MS)
      for (let turn = 0; turn <= VERDICT_TURNS; turn++) await immediate()
      return found
    },
    [Symbol.dispose]() {
      clearInterval(timer)
      unsubscribe(REQUEST_BEGINS, countRequest)
      unsubscribe(CONNECTION_BEGINS, countConnection)
      compiling.unsubscribe(compilation)
      collector.disconnect()
      void onlooker.terminate()
    },
  }
}
