// The Agent port: what control asks of the machine that holds a server. Everything that crosses it is plain data that
// could travel a network. Every call names its server, may be repeated safely, and may time out. Bytes of files never
// cross it: they flow over the agent's own HTTP routes, opened by signed links.
import type { AgentBackups } from './agent-backups.ts'
import type { AgentFiles } from './agent-files.ts'
import type { ErrorCode } from './errors.ts'

export interface Agent {
  servers: AgentServers
  files: AgentFiles
  backups: AgentBackups
  tasks: AgentTasks
  facts: AgentFacts
  links: AgentLinks
  disks: AgentDisks
}

export interface AgentDisks {
  /** Writes and syncs a few bytes on each disk, and fails with the code that a request would fail with. Costs a sync. */
  probe(): Promise<void>
}

export interface AgentLinks {
  /** Ends what runs under links of these tokens and refuses them from now on, also after a restart. Must be idempotent. */
  revoke(request: { tokenIds: string[] }): Promise<void>
}

export interface AgentServers {
  /** Makes the server's folders. Must be idempotent. */
  create(request: { serverId: string }): Promise<void>
  /** Takes the server's folders away. Must be idempotent: a server that is not there is a success. */
  remove(request: { serverId: string }): Promise<void>
  /** Removes folders that hold nothing and belong to none of these servers: what a crash during creation leaves. */
  sweep(request: { known: string[] }): Promise<{ removed: string[] }>
}

/** Work on the agent that takes longer than an answer may. A task is named by its caller, so starting it twice is one task. */
export interface AgentTasks {
  /** Must be idempotent for one taskId. Returns once the task is known, not when it is done. */
  start(task: { taskId: string; serverId: string; work: TaskWork }): Promise<void>
  /** Answers at once when the task's version differs from `version`, else when it changes or `waitMs` have passed. */
  poll(request: { taskId: string; serverId: string; version: number; waitMs: number }): Promise<TaskState>
  /** Asks the task to stop. It ends as `cancelled` once everything it staged is gone. */
  cancel(request: { taskId: string; serverId: string }): Promise<void>
}

/** Each kind of work adds its own shape here, from the file of its area. */
export type TaskWork = { kind: string; [field: string]: unknown }

export interface TaskProgress {
  filesDone: number
  filesTotal: number | null
  bytesDone: number
  bytesTotal: number | null
}

export interface TaskState {
  taskId: string
  /** `unknown`: the agent has never heard of it, or has forgotten it after a restart; start it again. */
  status: 'unknown' | 'running' | 'completed' | 'failed' | 'cancelled'
  version: number
  progress: TaskProgress
  result: unknown
  error: { code: ErrorCode; detail: string } | null
}

/**
 * What happened on the agent without control asking (an upload arrived, a scrub found damage), kept on disk until
 * control has written it down: read, record, then forget.
 */
export interface AgentFacts {
  /** Oldest first. Answers at once when there are any, else when one arrives or `waitMs` have passed. */
  read(request: { limit: number; waitMs: number }): Promise<AgentFact[]>
  /** Must be idempotent. Forgets every fact up to and including this one. */
  forget(request: { upTo: string }): Promise<void>
}

export interface AgentFact {
  /** Sortable and unique, so that a fact read twice is recorded once. */
  id: string
  serverId: string
  kind: string
  at: number
  /** Who caused it, where somebody did: from the signed link that opened the door. */
  cause: { tokenId: string; requestId: string; ip: string; userAgent: string } | null
  properties: Record<string, unknown>
}
