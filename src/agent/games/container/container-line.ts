// The line to the supervisor of a container, which holds its pipes. One that is gone gets a successor: until there is one, the
// game waits for somebody to read what it writes.
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fail } from '../../../contract/errors.ts'
import { readRecord } from '../../../kit/files/durable-record.ts'
import { signalGroup } from '../process-identity.ts'
import { type PipesOrder, type RunRecord, runFile } from '../supervisor/protocol.ts'
import {
  type LineEvents,
  reachSupervisor,
  type SupervisorLine,
  spawnSupervisor,
} from '../supervisor/supervisor-client.ts'

const RETRY_MS = 500
/** For a supervisor that has just been started, or has just lost its line. */
const ANSWERS_WITHIN_MS = 10_000

export interface ContainerLineDeps {
  /** The game's. */
  folder: string
  order: Omit<PipesOrder, 'isSuccessor'>
  /** Whether the game writes. */
  hasStarted(): boolean
  /** Whether anybody has a use for a successor. */
  isWanted(): boolean
  /** We let go of it. */
  detaching: AbortSignal
  changed(): void
  onUnexpected(error: unknown): void
}

export interface ContainerLine {
  /** Reaches its supervisor, or starts one. */
  attach(): Promise<void>
  /** Undefined while nobody answers. */
  current(): SupervisorLine | undefined
  /** Resolves once a supervisor that is gone has its successor, or needs none. */
  whenAttached(): Promise<void>
}

export function createContainerLine(deps: ContainerLineDeps): ContainerLine {
  const { folder, order, detaching } = deps
  let line: SupervisorLine | undefined
  let attached: Promise<void> = Promise.resolve()
  const recordNow = () => readRecord<RunRecord>(join(folder, runFile(order.runId)))

  const events: LineEvents = {
    changed: deps.changed,
    closed() {
      if (!line || !deps.isWanted() || detaching.aborted) return
      line = undefined
      attached = attachAgain()
    },
  }

  /** Not for ever: another one can take its place. */
  const reach = (record: RunRecord) =>
    reachSupervisor(folder, record, events, {
      signal: AbortSignal.any([detaching, AbortSignal.timeout(ANSWERS_WITHIN_MS)]),
      isOver: () => false,
    })

  async function attach(): Promise<void> {
    const record = recordNow()
    line = record && (await reach(record))
    if (!line) {
      // One that does not answer would write to the console too.
      if (record) signalGroup(record.supervisor, 'SIGKILL')
      const answer = await spawnSupervisor(folder).begin(folder, { ...order, isSuccessor: record !== undefined })
      if (!answer.started) throw fail('not_startable', `The game could not be started: ${answer.message}.`)
      line = await reach(recordNow() as RunRecord)
      if (!line) throw fail('not_startable', 'The game could not be started: its supervisor ended.')
    }
    if (deps.hasStarted()) await line.ask({ op: 'begin' })
    deps.changed()
  }

  async function attachAgain(): Promise<void> {
    while (deps.isWanted() && !detaching.aborted) {
      try {
        return await attach()
      } catch (error) {
        deps.onUnexpected(error)
        await delay(RETRY_MS, undefined, { signal: detaching, ref: false }).catch(() => {})
      }
    }
  }

  return { attach, current: () => line, whenAttached: () => attached }
}
