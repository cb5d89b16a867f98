// What a kind of job must provide, and what it is given to work with.
import type { Progress, WorkError } from '../../contract/jobs.ts'
import type { JobRow, Trx } from '../db/tables.ts'
import type { Actor } from '../http/actor.ts'

export interface JobFacts<Input> {
  jobId: string
  serverId: string
  input: Input
  /** Who asked for it, for the entries that it writes. */
  actor: Actor
}

export interface JobContext<Input> extends JobFacts<Input> {
  attempt: number
  /** Aborted when somebody cancels the job, and when the service stops. */
  signal: AbortSignal
  report(progress: Progress): void
  /** Ends the job in the transaction of the change that ends it. Without it, the job ends when the handler returns. */
  complete(trx: Trx, result?: unknown): Promise<void>
}

export interface BadEnd {
  status: 'failed' | 'cancelled'
  error?: WorkError
}

export interface JobHandler<Input = unknown> {
  /** In the transaction that takes it out of the queue, with the server locked: what else has to say that it runs now. */
  onBegin?(trx: Trx, job: JobFacts<Input>): Promise<void>
  run(context: JobContext<Input>): Promise<unknown>
  /** How long to wait before the next attempt after this error; null to give up. Gives up by default. */
  retryAfterMs?(error: unknown, attempt: number): number | null
  /** In the transaction that makes the end known, with the server locked: what else has to be written when it failed or was cancelled. */
  onEnd?(trx: Trx, job: JobFacts<Input>, end: BadEnd): Promise<void>
  cancellable: boolean
  /**
   * Whether what an attempt has begun may come to its end though somebody cancels it, or though the process went down with
   * it too often. Then `run` is called to find out, with the signal aborted; it throws the signal's reason where nothing
   * was done, and any other error is a failure.
   */
  settlesCancel?: boolean
  /** Half-done is no place to stop: where the process goes down with it again and again, it is put off and not failed. */
  isNeverGivenUp?: boolean
  /** Throws if this one may not be cancelled. Asked in the transaction of the cancelling. */
  checkCancel?(trx: Trx, job: JobFacts<Input>): Promise<void>
  /** How many of this kind may run at once, each for another server; the slots are this kind's own. */
  atOnce: number
}

export function factsOf(row: JobRow): JobFacts<unknown> {
  const { actor, input } = JSON.parse(row.input) as { actor: Actor; input: unknown }
  return { jobId: row.id, serverId: row.server_id, input, actor }
}
