// Runs the agent's long work and answers polls about it. A finished task is remembered for a while, so that a caller
// who was disconnected can still learn how it ended.
import { setTimeout as delay } from 'node:timers/promises'
import type { AgentTasks, TaskKind, TaskProgress, TaskResults, TaskState, TaskWork, WorkOf } from '../contract/agent.ts'
import { toFailure } from '../http/problem.ts'

const REMEMBER_MS = 10 * 60_000
const LONGEST_WAIT_MS = 30_000
const TELL_EVERY_MS = 50

const uncancelled = new WeakSet<WeakKey>()

/** For an error of work that could not be cancelled any more: whoever cancelled it is told how it failed. */
export function despiteCancel<E extends WeakKey>(error: E): E {
  uncancelled.add(error)
  return error
}

export interface TaskContext {
  taskId: string
  serverId: string
  signal: AbortSignal
  /** The service stops, which waits for nothing outside of it that does not answer. The other signal comes with it. */
  stopping?: AbortSignal
  /** May be called as often as is convenient: waiting callers are woken now and then. They hear of the end at once. */
  report(progress: Partial<TaskProgress>): void
}

export type TaskHandlers<Kinds extends TaskKind = TaskKind> = {
  [K in Kinds]: (work: WorkOf<K>, context: TaskContext) => Promise<TaskResults[K]>
}

type TaskHandler = (work: TaskWork, context: TaskContext) => Promise<unknown>

interface Task {
  state: TaskState
  abort: AbortController
  waiters: Set<() => void>
  telling: NodeJS.Timeout | undefined
  done: Promise<void>
}

export interface TaskRunner extends AgentTasks {
  /** Cancels what is running and waits for it to have let go. */
  stop(): Promise<void>
}

export function createTasks(deps: {
  handlers: TaskHandlers
  onUnexpected: (error: unknown, taskId: string) => void
}): TaskRunner {
  const tasks = new Map<string, Task>()
  const stopping = new AbortController()

  function begin(taskId: string, serverId: string, work: TaskWork): Task {
    const handler = deps.handlers[work.kind] as TaskHandler | undefined
    if (!handler) throw new Error(`no handler for work of kind ${work.kind}`)
    const abort = new AbortController()
    const progress: TaskProgress = { filesDone: 0, filesTotal: null, bytesDone: 0, bytesTotal: null }
    const state: TaskState = { taskId, status: 'running', version: 1, progress, result: null, error: null }
    const task: Task = { state, abort, waiters: new Set(), telling: undefined, done: Promise.resolve() }
    const report = (change: Partial<TaskProgress>) => {
      Object.assign(state.progress, change)
      task.telling ??= setTimeout(() => changed(task), TELL_EVERY_MS).unref()
    }
    task.done = run(task, () =>
      handler(work, { taskId, serverId, signal: abort.signal, stopping: stopping.signal, report }),
    )
    return task
  }

  async function run(task: Task, work: () => Promise<unknown>): Promise<void> {
    const { state } = task
    try {
      state.result = (await work()) ?? null
      state.status = 'completed'
    } catch (error) {
      const { code, detail } = toFailure(error)
      // What can no longer be cancelled has ended in its own way.
      const isFinal = code === 'restore_unfinished' || (error instanceof Error && uncancelled.has(error))
      state.status = task.abort.signal.aborted && !isFinal ? 'cancelled' : 'failed'
      if (state.status === 'failed') {
        state.error = { code, detail }
        if (code === 'internal') deps.onUnexpected(error, state.taskId)
      }
    }
    changed(task)
    setTimeout(() => tasks.delete(state.taskId), REMEMBER_MS).unref()
  }

  function changed(task: Task): void {
    clearTimeout(task.telling)
    task.telling = undefined
    task.state.version++
    for (const wake of task.waiters) wake()
    task.waiters.clear()
  }

  return {
    async start({ taskId, serverId, work }) {
      if (!tasks.has(taskId)) tasks.set(taskId, begin(taskId, serverId, work))
    },

    async poll({ taskId, version, waitMs }) {
      const task = tasks.get(taskId)
      if (!task) return forgotten(taskId)
      if (task.state.version === version) await changeOrTimeout(task, Math.min(waitMs, LONGEST_WAIT_MS))
      return structuredClone(task.state)
    },

    async cancel({ taskId }) {
      tasks.get(taskId)?.abort.abort()
    },

    async stop() {
      stopping.abort()
      for (const task of tasks.values()) task.abort.abort()
      await Promise.all([...tasks.values()].map((task) => task.done))
    },
  }
}

async function changeOrTimeout(task: Task, waitMs: number): Promise<void> {
  const abort = new AbortController()
  const change = new Promise<void>((resolve) => task.waiters.add(resolve))
  await Promise.race([change, delay(waitMs, undefined, { signal: abort.signal }).catch(() => {})])
  abort.abort()
}

function forgotten(taskId: string): TaskState {
  const progress: TaskProgress = { filesDone: 0, filesTotal: null, bytesDone: 0, bytesTotal: null }
  return { taskId, status: 'unknown', version: 0, progress, result: null, error: null }
}
