// How the file descriptors of this process are shared out, so that connections that only wait never take those that work
// needs. Node raises its soft limit to the hard one at its start.
import { readFileSync } from 'node:fs'
import { StartFault } from '../start-fault.ts'

export interface DescriptorBudget {
  /** What the process may have open in all. */
  limit: number
  /** Connections of HTTP at once. */
  connections: number
  /** Connections to the embedded DNS server at once. */
  dnsConnections: number
  /** Uploads and downloads at once, each of which has a file open beside its connection. */
  transfers: number
  /** Files that one backup or one restore holds open at once. */
  filesAtOnce: number
}

/** The database, the journal, the log, the threads and what listens: 46 at most were seen, and games have some more. */
const OWN = 56
/** The manifest, the journal and the directories of a restore: 12 were seen, of which the threads' share of `OWN` leaves some. */
const WORK = 8
/** Below, a backup beside a handful of connections could not be made. */
const LEAST = 80
const FILES_AT_ONCE_MAX = 1024

export function planDescriptors(
  limit: number,
  most: Pick<DescriptorBudget, 'connections' | 'dnsConnections'>,
): DescriptorBudget {
  if (limit < LEAST) {
    throw new StartFault(
      `This process may have ${limit} files open, and Gamekeeper needs ${LEAST} at the least. Raise the limit with ` +
        '"ulimit -n 1024", or with LimitNOFILE= in the unit of systemd.',
    )
  }
  const free = limit - OWN - WORK
  const share = (part: number, most: number) => Math.max(2, Math.min(most, Math.floor(free * part)))
  return {
    limit,
    connections: share(1 / 2, most.connections),
    dnsConnections: share(1 / 8, most.dnsConnections),
    transfers: share(1 / 4, most.connections),
    filesAtOnce: share(1 / 8, FILES_AT_ONCE_MAX),
  }
}

/** Where a system has no /proc, nothing is known of a limit. */
export function readDescriptorLimit(): number {
  try {
    const [, soft = ''] = /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(soft)
  } catch {
    return Number.MAX_SAFE_INTEGER
  }
}
