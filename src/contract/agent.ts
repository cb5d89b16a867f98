// The Agent port: what control asks of the machine that holds a server. Everything that crosses it is plain data that
// could travel a network, a failure too: its code, its detail and the fields at fault. Every call names its server, may be
// repeated safely, and may time out. Bytes of files never cross it: they flow over the agent's own HTTP routes, opened by
// signed links.
import type { ActivitySource } from './activity.ts'
import type { AgentBackups, BackupsResults, BackupsWork } from './agent/agent-backups.ts'
import type { AgentFiles, FilesResults, FilesWork } from './agent/agent-files.ts'
import type { AgentGames, GamesResults, GamesWork, RehearsalResults, RehearsalWork } from './agent/agent-games.ts'
import type { AgentOffsite, OffsiteResults, OffsiteWork } from './agent/agent-offsite.ts'
import type { Disk } from './disks.ts'
import type { ErrorCode } from './errors.ts'

export interface Agent {
  servers: AgentServers
  files: AgentFiles
  backups: AgentBackups
  offsite: AgentOffsite
  games: AgentGames
  tasks: AgentTasks
  facts: AgentFacts
  links: AgentLinks
  disks: AgentDisks
}

export interface AgentDisks {
  /** Writes and syncs a few bytes on each disk, and fails with the code that a request would fail with. Costs a sync. */
  probe(): Promise<void>
  /** Each disk once, with what lies on it. */
  measure(): Promise<Disk[]>
}

export interface AgentLinks {
  /** Ends what runs under links of these tokens and refuses them from now on, also after a restart. Must be idempotent. */
  revoke(request: { tokenIds: string[] }): Promise<void>
}

export interface AgentServers {
  /** Makes the server's folders, or puts held ones back: a server that was lost to control may still have files. Must be idempotent. */
  create(request: { serverId: string }): Promise<void>
  /**
   * Puts the server's folders aside: nothing reads or changes them, and links to them are dead. What is under way on them
   * has ended when it answers. Must be idempotent.
   */
  hold(request: { serverId: string }): Promise<void>
  /** Puts held folders back as they were. Must be idempotent. */
  unhold(request: { serverId: string }): Promise<void>
  /** Takes the server's folders away, held or not. Must be idempotent: a server that is not there is a success. */
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

export type TaskWork = FilesWork | BackupsWork | OffsiteWork | GamesWork | RehearsalWork
export type TaskKind = TaskWork['kind']
export type WorkOf<K extends TaskKind> = Extract<TaskWork, { kind: K }>

/** What each kind of work answers with when it is done. */
export interface TaskResults extends FilesResults, BackupsResults, OffsiteResults, GamesResults, RehearsalResults {}

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
 * What happened on the agent (files were changed, an upload arrived), kept on its disk until control has recorded it:
 * read, record under the fact's own id, then forget. Nothing here depends on the order of ids or on a clock.
 */
export interface AgentFacts {
  /** Answers at once when there are any but `except`, else when one arrives or `waitMs` have passed. */
  read(request: { limit: number; waitMs: number; except?: string[] }): Promise<AgentFact[]>
  /** Those of one server, also such as the request that caused them is about to record. */
  readAllOf(request: { serverId: string; limit: number }): Promise<AgentFact[]>
  /** The result of a request of `AgentFiles`, until it is forgotten; null where it changed nothing. */
  find(request: { serverId: string; requestId: string }): Promise<AgentFact | null>
  /** Must be idempotent. Forgets these and no others: a fact may have arrived since they were read. */
  forget(request: { ids: string[] }): Promise<void>
}

export interface AgentFact {
  /** The id of the activity entry that tells of it, so that a fact that is read twice is recorded once. */
  id: string
  serverId: string
  kind: string
  at: number
  /** Who caused it, where somebody did. */
  cause: FactCause | null
  properties: Record<string, unknown>
  /** The request of `AgentFiles` that it came of. */
  requestId?: string | null
  /** What keeps the answer for the caller's idempotency key, and the answer. */
  idempotency?: KeptRequest | null
  answer?: unknown
}

export interface FactCause {
  tokenId: string
  requestId: string
  ip: string | null
  userAgent: string | null
  /** A signed link by default. */
  source?: ActivitySource
}

/** Who asks for a change of files: it is written down before the disk is touched. */
export interface ChangeOrigin {
  cause: FactCause | null
  idempotency: KeptRequest | null
}

/** A request with an idempotency key, as far as it takes to keep its answer without the caller's token. */
export interface KeptRequest {
  tokenId: string
  key: string
  fingerprint: string
  /** Encrypts this answer and nothing else, in Base64. */
  answerKey: string
}
