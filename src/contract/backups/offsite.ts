// The off-site store: what of a backup is there, and the state of the whole.
import { SURPLUS_REASONS } from '../agent/agent-offsite.ts'
import { Progress, WorkError } from '../jobs.ts'
import { operation } from '../operation.ts'
import { BOUNDS } from '../operation-bounds.ts'
import { Bytes, Closed, Nullable, OneOf, type Static, Timestamp, Type } from '../schema.ts'

export const OFFSITE_STATES = ['pending', 'stored', 'failed'] as const

export const BackupOffsite = Type.Object({
  state: OneOf(OFFSITE_STATES, {
    description:
      '`pending`: it is still to be sent. `stored`: it is there, with everything it needs. `failed`: it could not be sent, and is tried again; `error` says why',
  }),
  storedAt: Nullable(Timestamp),
  error: Type.Union([WorkError, Type.Null()]),
})
export type BackupOffsite = Static<typeof BackupOffsite>

const Count = Type.Integer({ minimum: 0 })

const Run = Type.Object({
  startedAt: Timestamp,
  endedAt: Timestamp,
  sentBlobs: Count,
  sentBytes: Bytes,
  removedBlobs: Count,
  removedBytes: Bytes,
  error: Type.Union([WorkError, Type.Null()], { description: 'Why it failed' }),
})

const Holdings = Type.Object({ backups: Count, blobs: Count, bytes: Bytes })

const Surplus = Type.Object(
  {
    ...Holdings.properties,
    reason: OneOf(SURPLUS_REASONS, {
      description:
        '`append_only`: nothing is ever removed, or the key may not. `shrinks`: less than half would be left of what was there within the last week. `store_incomplete`: the local store lacks backups or packs that nobody has deleted. The last two wait for a confirmation',
    }),
  },
  { description: 'What it holds and the local store does not' },
)

export const Offsite = Type.Object({
  place: Nullable(Type.String({ description: 'Where it is, without keys; null where none is configured' })),
  isAppendOnly: Type.Boolean(),
  isReachable: Nullable(
    Type.Boolean({ description: 'As of the last run; null before the first has ended, and where none is configured' }),
  ),
  activity: OneOf(['off', 'idle', 'sending', 'waiting'], {
    description: '`waiting`: after a failure, until `nextRunAt`',
  }),
  problem: Nullable(Type.String({ description: 'What somebody has to do something about, in words' })),
  progress: Type.Union([Progress, Type.Null()], { description: 'Of the run under way; files are blobs' }),
  lastRun: Type.Union([Run, Type.Null()], { description: 'Since the start of the service' }),
  nextRunAt: Nullable(Timestamp),
  pendingBackups: Count,
  pendingBytes: Type.Integer({ minimum: 0, description: 'What those backups have added to the local store' }),
  oldestPendingAt: Nullable(Timestamp),
  mirror: Type.Union([Holdings, Type.Null()], { description: 'What it holds, as of the last run that succeeded' }),
  surplus: Type.Union([Surplus, Type.Null()]),
})
export type Offsite = Static<typeof Offsite>

export const PruneRequest = Closed({
  bytes: Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'As `surplus.bytes` says: what has come to it since needs another confirmation',
  }),
})
export type PruneRequest = Static<typeof PruneRequest>

const example = {
  place: 's3://my-games/castle?endpoint=https://s3.example.org',
  isAppendOnly: false,
  isReachable: true,
  activity: 'idle',
  problem: null,
  progress: null,
  lastRun: {
    startedAt: '2026-11-15T00:00:01.200Z',
    endedAt: '2026-11-15T00:00:02.900Z',
    sentBlobs: 3,
    sentBytes: 28_311_552,
    removedBlobs: 0,
    removedBytes: 0,
    error: null,
  },
  nextRunAt: null,
  pendingBackups: 0,
  pendingBytes: 0,
  oldestPendingAt: null,
  mirror: { backups: 42, blobs: 131, bytes: 2_147_483_648 },
  surplus: null,
}
const pruning = {
  ...example,
  activity: 'sending',
  surplus: { backups: 40, blobs: 120, bytes: 2_000_000_000, reason: 'shrinks' },
}
const tag = 'Off-site'
const needs = 'Needs a token with `*` for all servers.'

export const readOffsite = operation({
  id: 'readOffsite',
  method: 'GET',
  path: '/offsite',
  tag,
  summary: 'Read the state of the off-site store',
  description: `Where none is configured, \`place\` is null. ${needs}`,
  scope: '*',
  bound: BOUNDS.rows,
  answers: { 200: { description: 'Its state', schema: Offsite, example } },
  errors: [],
})

export const pruneOffsite = operation({
  id: 'pruneOffsite',
  method: 'POST',
  path: '/offsite/prune',
  tag,
  summary: 'Confirm that most of the off-site store may be removed',
  description:
    'What the local store no longer has is removed by itself, but not when less than half would be left, nor when the local ' +
    `store lacks what nobody has deleted: then it waits for this. Lifts nothing of append-only. ${needs}`,
  scope: '*',
  bound: BOUNDS.body,
  body: PruneRequest,
  bodyExample: { bytes: 2_000_000_000 },
  answers: { 202: { description: 'It is being removed', schema: Offsite, example: pruning } },
  errors: ['offsite_not_configured', 'too_large', 'unsupported_media_type', 'idempotency_conflict'],
})

export const claimOffsite = operation({
  id: 'claimOffsite',
  method: 'POST',
  path: '/offsite/claim',
  tag,
  summary: 'Take the off-site store over from the service that has it',
  description:
    'For a service that is gone for good, or whose data directory was replaced. The other one is refused from then on. A ' +
    `store with another key or another hash is not taken over (\`offsite_taken\`). ${needs}`,
  scope: '*',
  bound: BOUNDS.rows,
  answers: { 200: { description: 'Its state', schema: Offsite, example } },
  errors: ['offsite_not_configured', 'offsite_taken', 'offsite_unreachable', 'idempotency_conflict'],
})

export const OFFSITE_OPERATIONS = [readOffsite, pruneOffsite, claimOffsite] as const
