// A file that is read, and the parts of it that the worker threads are told of.
import type { Descriptor } from '../../../kit/files/descriptor.ts'
import type { EntryStats } from '../../files/sandbox/looked.ts'
import { PRINTED_FROM_BYTES, type Prints, printsBetween } from '../blocks/block-prints.ts'
import type { PriorBlocks, PriorRange } from '../blocks/prior-blocks.ts'
import type { FileRange } from '../workers/worker-jobs.ts'
import type { JoinedReads, ListedRead } from './joined-reads.ts'

export interface ReadAs {
  readonly attempts: number
  readonly stats: EntryStats
  /** When the stats were taken. */
  readonly seenAt: number
  /** Its pages were written to the disk before it was read, so that any later write changes its times. */
  readonly isFlushed: boolean
}

/** What was read at the last attempt; `isTorn`: the file changed during that too. */
export type OnRead = (outcome: JoinedReads, as: ReadAs) => void

/** What to read: an open file, or a name in a directory that is held open. Changed files are opened to be read again. */
export type Source = { file: Descriptor } | { address: string | Buffer; hold: Disposable }

export interface OpenedFile {
  source: Source
  stats: EntryStats
  seenAt: number
  attempts: number
  isFlushed: boolean
  /** Resolves once its pages have been written to the disk, where that was asked for and has begun. */
  flushing: Promise<void> | undefined
  mustFlush: boolean
  known: Prints | undefined
  prior: PriorBlocks | undefined
  /** Of a file that is read in more than one go. */
  segments: (ListedRead | undefined)[]
  segmentsLeft: number
  /** Its index among those that are open. */
  place: number
  done: OnRead
}

export const NO_SEGMENTS: (ListedRead | undefined)[] = []

/** What a thread is told of it is taken from the file when it is sent: there may be hundreds of thousands. */
export class Part implements FileRange {
  readonly file: OpenedFile
  readonly segment: number
  readonly from: number
  readonly to: number

  constructor(file: OpenedFile, segment: number, from: number, to: number) {
    this.file = file
    this.segment = segment
    this.from = from
    this.to = to
  }

  get fd(): number {
    const { source } = this.file
    return 'file' in source ? source.file.fd : -1
  }
  get address(): string | Buffer | null {
    const { source } = this.file
    return 'file' in source ? null : source.address
  }
  get size(): bigint {
    return this.file.stats.size
  }
  get mtimeNs(): bigint {
    return this.file.stats.mtimeNs
  }
  get ctimeNs(): bigint {
    return this.file.stats.ctimeNs
  }
  get isPrinted(): boolean {
    return Number(this.size) >= PRINTED_FROM_BYTES
  }
  get known(): Prints | null {
    const { known } = this.file
    return known ? printsBetween(known, this.from, this.to) : null
  }
  get prior(): PriorRange | null {
    return this.file.prior?.between(this.from, this.to) ?? null
  }
}
