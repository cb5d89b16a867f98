// The agent's side of the mirror: the work that a task runs, and the claim of its place.
import { randomUUID } from 'node:crypto'
import type { BucketWarning } from '../../blobs/bucket.ts'
import { openBlobStore } from '../../blobs/open-store.ts'
import type { BlobStore } from '../../blobs/store.ts'
import type { AgentOffsite, OffsiteWork } from '../../contract/agent/agent-offsite.ts'
import { fail } from '../../contract/errors.ts'
import type { KeepLocal } from '../../contract/keep-local.ts'
import { createMutex } from '../../kit/waiting/mutex.ts'
import { leaveOffsite } from '../backups/maintain/keep-local.ts'
import type { Repository } from '../backups/store/repository.ts'
import type { Layout } from '../layout.ts'
import type { TaskContext, TaskHandlers } from '../tasks.ts'
import { type Bundles, listedBundles } from './bundles.ts'
import { guardStore, inTime, STALLED_MS } from './guarded-store.ts'
import { listMirror } from './listing.ts'
import type { Blobs } from './mirror-plan.ts'
import { openMirrorRecord } from './mirror-record.ts'
import { type Mirror, runMirror } from './mirror-run.ts'
import { createOwnership, sendFormat } from './ownership.ts'

/** Of one answer while somebody waits for it. */
const CLAIM_MS = 20_000

/** Where the mirror is, and what it may cost. */
export interface MirrorTarget {
  /** What people call it; without keys. */
  place: string
  /** `clear`: for whoever it belongs to, what was left unfinished there is removed. */
  open(options: { clear: boolean }): Promise<BlobStore>
  /** What went wrong there, in a sentence without secrets. */
  describe(error: unknown): string
  /** What was found when it was opened, and does not keep it from being used; nothing by default. */
  warnings?(): readonly BucketWarning[]
  bytesPerSecond: number | null
  /** Nothing is ever removed. */
  isAppendOnly: boolean
  /** How long one answer may take; a store that gives up sooner by itself is better. */
  stalledMs?: number
  /** What of the backups stays on the disk once it is in the mirror; everything by default. */
  keepLocal?: KeepLocal | null
}

export interface OffsiteOfAgent extends AgentOffsite {
  handlers: TaskHandlers<OffsiteWork['kind']>
}

export function createAgentOffsite(deps: {
  layout: Layout
  repository: () => Promise<Repository>
  target: MirrorTarget | null
  now: () => number
}): OffsiteOfAgent {
  const { target, now } = deps
  /** Two at once would each have their own idea of what the mirror holds. */
  const inTurn = createMutex()
  /** Known to be ours, and cleared of what an earlier process has left. */
  let opened: BlobStore | undefined
  /** Unknown until the mirror was listed, and again whenever something has failed: the mirror itself is the truth. */
  let inventory: Stock | undefined
  const session = randomUUID()
  /** Whether the last removal was refused, and why; undefined before there was one. */
  let refusal: string | null | undefined
  /** What a bundle holds, never changes while it has its size. */
  let bundles: Bundles | undefined

  function requireTarget(): MirrorTarget {
    if (target) return target
    throw fail('offsite_not_configured', 'No off-site store is configured: set GAMEKEEPER_OFFSITE.')
  }

  async function open(signal: AbortSignal, clear: boolean): Promise<BlobStore> {
    const { describe, ...opening } = requireTarget()
    return await inTime(
      () =>
        opening.open({ clear }).catch((error: unknown) => {
          throw fail('offsite_unreachable', describe(error), error)
        }),
      signal,
      STALLED_MS,
    )
  }

  /** The place, once it is known to be ours. */
  async function ownPlace(signal: AbortSignal) {
    const place = await openPlace({ ...deps, session }, requireTarget(), opened ?? (await open(signal, false)), signal)
    await place.ownership.require()
    if (opened) return place
    // Only now: what is unfinished there may be another's.
    opened = await open(signal, true)
    return await openPlace({ ...deps, session }, requireTarget(), opened, signal)
  }

  async function mirror(work: OffsiteWork, { signal, report }: TaskContext) {
    signal.throwIfAborted()
    const repository = await deps.repository()
    const known = work.isThorough ? undefined : inventory
    inventory = undefined
    const place = await ownPlace(signal)
    const stock = known ?? (await takeStock(place, bundles))
    const { held } = stock
    bundles = stock.bundles
    const run = { ...place, ...stock, repository, inventory: held }
    const { refusal: refused, ...done } = await runMirror(run, work, signal, report)
    if (refused !== null || done.removed.blobs > 0) refusal = refused
    inventory = stock
    const keep = requireTarget().keepLocal
    if (keep) await leaveOffsite(repository, { keep, stored: held, now: now(), signal })
    return { ...done, warnings: warningsOf(requireTarget().warnings?.() ?? [], refusal) }
  }

  return {
    async claim() {
      // Its format is compared with that of the mirror.
      await deps.repository()
      const { signal } = new AbortController()
      await claimPlace({ ...deps, session }, requireTarget(), await open(signal, false), signal)
    },
    handlers: { 'backups.mirror': (work, context) => inTurn(() => mirror(work, context)) },
  }
}

/** What a removal has shown counts more than what was tried when the place was opened. */
function warningsOf(found: readonly BucketWarning[], refusal: string | null | undefined): string[] {
  const others = found.filter(({ check }) => check !== 'delete').map(({ detail }) => detail)
  const ofDeleting = found.find(({ check }) => check === 'delete')?.detail ?? refusal
  return refusal !== null && ofDeleting ? [...others, ofDeleting] : others
}

type PlaceDeps = {
  layout: Layout
  now: () => number
  /** Of this process. */
  session: string
}

/** The place of the mirror as one piece of work has it, whoever it belongs to. */
async function openPlace(
  { layout, now, session }: PlaceDeps,
  target: MirrorTarget,
  store: BlobStore,
  signal: AbortSignal,
  stalledMs = target.stalledMs,
) {
  const { describe, bytesPerSecond, isAppendOnly } = target
  const mirror = guardStore(store, { signal, describe, stalledMs })
  const local = await openBlobStore({ kind: 'local', dir: layout.backups }, { clear: false })
  const record = openMirrorRecord(layout.mirror, target.place, now)
  const ownership = createOwnership({ mirror, local, record, session, now })
  return { mirror, local, record, ownership, bytesPerSecond, isAppendOnly }
}

/** As `AgentOffsite.claim`, in a store that is open already. */
export async function claimPlace(
  deps: Omit<PlaceDeps, 'session'> & { session?: string },
  target: MirrorTarget,
  store: BlobStore,
  signal: AbortSignal,
): Promise<void> {
  const { session = randomUUID() } = deps
  const { ownership } = await openPlace({ ...deps, session }, target, store, signal, CLAIM_MS)
  await ownership.take()
}

type Stock = Pick<Mirror, 'format' | 'bundles'> & { held: Blobs }

/** What the mirror holds. It says how it is made before anything else is sent. */
async function takeStock(
  { mirror, local }: { mirror: BlobStore; local: BlobStore },
  known: Bundles | undefined,
): Promise<Stock> {
  const { blobs, bundles } = await listMirror(mirror)
  const version = await sendFormat(mirror, local)
  return { held: blobs, bundles: listedBundles(bundles, known), format: { version } }
}
