// What this data directory knows of its mirror: by which name it has claimed it, and how large it was lately. It is kept
// beside the store, not in it: a copy of the store is another service.
import { randomUUID } from 'node:crypto'
import { readRecord, writeRecord } from '../../kit/files/durable-record.ts'

/** How long the mirror's largest size counts. */
const PEAK_MS = 7 * 24 * 3600_000
/** That it is as large as before is not written down more often. */
const NOTED_MS = 3600_000
/** A claim that was sent before a process was killed may arrive after that of the next. */
const SESSIONS_KEPT = 32

interface Peak {
  value: number
  at: number
}

interface Kept {
  claimId: string
  place: string
  bytes: Peak
  backups: Peak
  /** Of the processes that have written a claim there, or were about to: any of these may be there. */
  sessions?: string[]
  /** The place may not have kept the last one. */
  isClaiming?: boolean
}

export interface MirrorSize {
  bytes: number
  backups: number
}

export interface MirrorRecord {
  readonly claimId: string
  /** Whether it was made just now: nothing is claimed by it yet. */
  readonly isNewClaim: boolean
  /** Whether that process was one of this data directory, as far as is known. One of a copy of it was not. */
  isKnownSession(session: string): boolean
  /** Whether a claim was begun of which it is not known that the place has kept it. */
  isClaiming(): boolean
  /** Before its claim is written. Durable once it returns, as the other. */
  beginSession(session: string): void
  /** The place has the claim. */
  keepSession(): void
  /** The mirror is this large now. Durable once it returns. */
  note(size: MirrorSize): void
  /**
   * Whether less than half would be left of what it held at some time within the last week: also whoever empties the
   * store little by little does not empty the mirror.
   */
  wouldShrink(size: MirrorSize): boolean
  /** From now on this is what it is compared with. */
  reset(size: MirrorSize): void
}

export function openMirrorRecord(path: string, place: string, now: () => number): MirrorRecord {
  const fresh = (claimId: string): Kept => ({
    claimId,
    place,
    bytes: { value: 0, at: 0 },
    backups: { value: 0, at: 0 },
  })
  const found = readRecord<Kept>(path)
  let kept = found?.place === place ? found : fresh(found?.claimId ?? randomUUID())
  if (kept !== found) writeRecord(path, kept)

  function write(change: Partial<Kept>): void {
    kept = { ...kept, ...change }
    writeRecord(path, kept)
  }

  function keep(change: Pick<Kept, 'bytes' | 'backups'>): void {
    if (change.bytes !== kept.bytes || change.backups !== kept.backups) write(change)
  }

  const isOver = ({ at }: Peak) => at < now() - PEAK_MS
  function raised(peak: Peak, value: number): Peak {
    const isNew = value > peak.value || isOver(peak) || (value === peak.value && peak.at < now() - NOTED_MS)
    return isNew ? { value, at: now() } : peak
  }
  const isHalved = (peak: Peak, value: number) => !isOver(peak) && value * 2 < peak.value

  return {
    claimId: kept.claimId,
    isNewClaim: found === undefined,
    isKnownSession: (session) => kept.sessions === undefined || kept.sessions.includes(session),
    isClaiming: () => kept.isClaiming === true,
    beginSession(session) {
      const before = (kept.sessions ?? []).filter((one) => one !== session)
      write({ sessions: [...before, session].slice(-SESSIONS_KEPT), isClaiming: true })
    },
    keepSession: () => write({ isClaiming: false }),
    note: ({ bytes, backups }) => keep({ bytes: raised(kept.bytes, bytes), backups: raised(kept.backups, backups) }),
    wouldShrink: ({ bytes, backups }) => isHalved(kept.bytes, bytes) || isHalved(kept.backups, backups),
    reset: ({ bytes, backups }) => {
      const at = now()
      keep({ bytes: { value: bytes, at }, backups: { value: backups, at } })
    },
  }
}
