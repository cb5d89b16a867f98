// How a change to a server's files is made: its intent is in the journal before the disk is touched, and its result
// afterwards. A change that fails, or that a crash interrupts, is settled by what is on the disk.
import type { ChangeOrigin } from '../../../contract/agent.ts'
import { fail } from '../../../contract/errors.ts'
import { beginUrgent } from '../../../kit/waiting/urgent.ts'
import type { Intent } from '../../journal/journal.ts'
import type { ServerFiles } from '../server-files.ts'
import { type Probe, settleProbe } from './probes.ts'

/** The event, and who asked for it. */
export interface Change {
  kind: string
  requestId: string | null
  origin: ChangeOrigin
}

export const BY_THE_SYSTEM: ChangeOrigin = { cause: null, idempotency: null }

export interface Made<T> {
  answer: T
  /** What the entry tells; null where nothing had to be changed. */
  properties: Record<string, unknown> | null
}

/** `work` gets ready as it likes, and touches the server's files only once `durable` has resolved. */
export async function journaled<T>(
  server: ServerFiles,
  change: Change,
  probe: Probe,
  work: (durable: Promise<void>) => Promise<Made<T>>,
): Promise<T> {
  const { kind, requestId, origin } = change
  using _urgent = beginUrgent()
  // While nothing else has changed, the disk still says how far they came.
  for (const left of [...server.unsettled]) await settleOrKeep(server, left)
  const { intent, durable } = server.journal.begin({ serverId: server.serverId, kind, requestId, ...origin, probe })
  // Whoever waits for it hears of a failure, also when that is later.
  durable.catch(() => {})
  try {
    const { answer, properties } = await work(durable)
    if (properties) server.journal.complete(intent, { properties, answer })
    else server.journal.drop(intent)
    return answer
  } catch (error) {
    await settleOrKeep(server, intent)
    throw error
  }
}

/** A part of a change may have been done: the fact tells of that part. */
export async function settle(server: ServerFiles, intent: Intent): Promise<void> {
  const outcome = await settleProbe(server, intent.probe as Probe)
  if (outcome) server.journal.complete(intent, outcome)
  else server.journal.drop(intent)
}

/** What cannot be seen on the disk now is told of, and looked at again before the next change, or at the next start. */
async function settleOrKeep(server: ServerFiles, intent: Intent): Promise<void> {
  // By one at a time.
  server.unsettled.delete(intent)
  try {
    await settle(server, intent)
  } catch (error) {
    server.unsettled.add(intent)
    server.onUnexpected(error)
  }
}

/** The answer that a request has had before, while the fact of it is in the journal. */
export async function answeredBefore(
  server: ServerFiles,
  requestId: string,
  { idempotency }: ChangeOrigin,
): Promise<{ answer: unknown } | undefined> {
  const fact = await server.journal.find({ serverId: server.serverId, requestId })
  if (fact?.answer === undefined) return undefined
  if (fact.idempotency?.fingerprint !== idempotency?.fingerprint)
    throw fail('idempotency_conflict', 'This Idempotency-Key was used for another request.')
  return { answer: fact.answer }
}
