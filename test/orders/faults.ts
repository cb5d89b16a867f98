// Orders that have gone wrong once, each with the one that shows it. They are played with every run of the tests: those
// that are mended must go right, and those that are not must still go wrong, so that whoever mends one says so here.
import type { Engine } from '../../src/control/db/database.ts'
import type { Finding, Rehearsal } from './pairs.ts'
import type { Pair, Role, Schedule } from './schedules.ts'

export interface Fault {
  what: string
  pair: Pair
  engines: readonly Engine[]
  /** Who is held, before a point that is called so. */
  first: Role
  before: RegExp
  atDisk?: boolean
  /** What is said of it, in whichever order it shows. */
  sign: RegExp
  /** Other pairs in which it shows too. */
  alsoIn?: RegExp
  isMended: boolean
}

const BOTH = ['sqlite', 'postgres'] as const
const POSTGRES = ['postgres'] as const

export const FAULTS: readonly Fault[] = [
  {
    what: 'a backup is locked while its server begins to be deleted: both are told that it is so, and it is gone',
    pair: { a: 'lock backup', b: 'delete server' },
    engines: POSTGRES,
    first: 'B',
    before: /^update servers$/,
    sign: /A was answered 200/,
    isMended: true,
  },
  {
    what: 'a backup is started on a server that has gone',
    pair: { a: 'create locked backup', b: 'delete server' },
    engines: POSTGRES,
    first: 'A',
    before: /^update servers$/,
    sign: /A was answered 202/,
    alsoIn: /^(create backup|restore|restore one file|create schedule|pack files) × delete server$/,
    isMended: true,
  },
  {
    what: 'two deletions of one server are both accepted',
    pair: { a: 'delete server', b: 'delete server' },
    engines: POSTGRES,
    first: 'A',
    before: /^update servers$/,
    sign: /was answered 202/,
    isMended: true,
  },
  {
    what: 'of two changes of a quota one is shown and the other enforced',
    pair: { a: 'change quota', b: 'change quota' },
    engines: BOTH,
    first: 'A',
    before: /^transaction ended$/,
    sign: /the agent enforces/,
    isMended: true,
  },
  {
    what: 'a change of a server that has gone is recorded, and answered with not_found',
    pair: { a: 'delete server', b: 'change quota' },
    engines: POSTGRES,
    first: 'B',
    before: /^update servers$/,
    sign: /activity has "server.changed"/,
    isMended: true,
  },
  {
    what: 'a verification is accepted for a server that is being deleted, and fails',
    pair: { a: 'verify backup', b: 'delete server' },
    engines: POSTGRES,
    first: 'A',
    before: /^insert jobs$/,
    sign: /A was answered 202|jobs has "verify failed/,
    isMended: true,
  },
  {
    what: 'the same change made twice at once is recorded twice',
    pair: { a: 'change backup limit', b: 'change backup limit' },
    engines: POSTGRES,
    first: 'A',
    before: /^update servers$/,
    sign: /activity has "server.changed"/,
    isMended: true,
  },
  {
    what: 'two deletions of one schedule are both done and recorded',
    pair: { a: 'delete schedule', b: 'delete schedule' },
    engines: POSTGRES,
    first: 'A',
    before: /^delete schedules$/,
    sign: /activity has "schedule.deleted"/,
    isMended: true,
  },
  {
    what: 'two revocations of one token are both done',
    pair: { a: 'revoke token', b: 'revoke token' },
    engines: POSTGRES,
    first: 'B',
    before: /^update /,
    sign: /was answered 204/,
    isMended: true,
  },
  {
    what: 'a backup fails since the one before it is deleted while it runs',
    pair: { a: 'create backup', b: 'delete backup' },
    engines: BOTH,
    first: 'A',
    before: /^disk open srv_…\/bkp_…$/,
    atDisk: true,
    sign: /backups has "by A failed free"/,
    isMended: true,
  },
  {
    what: 'what was written is not recorded where something written since is recorded first',
    pair: { a: 'put content', b: 'put content' },
    engines: BOTH,
    first: 'A',
    before: /^disk fdatasync$/,
    atDisk: true,
    sign: /activity lacks "file.(written|uploaded)"/,
    alsoIn: /^(put content|upload) × upload$/,
    isMended: true,
  },
  {
    what: 'a change of files is answered as done and never recorded, since its server is purged before its entry is written',
    pair: { a: 'purge server', b: 'restore from trash' },
    engines: BOTH,
    first: 'B',
    before: /^agent facts\.find answered$/,
    sign: /[AB] was answered 20[01] instead of 404/,
    alsoIn: /^purge server × (make folder|delete files|move file|copy file|empty trash|put content|upload)$/,
    isMended: true,
  },
  {
    what: 'a file that is deleted as soon as it is written is answered with not_found, and its writing is not recorded',
    pair: { a: 'delete files', b: 'put content' },
    engines: BOTH,
    first: 'B',
    before: /^disk fsync$/,
    atDisk: true,
    sign: /activity lacks "file.written"/,
    isMended: true,
  },
  {
    what: 'who is let in while a server is put aside is told that there is no such server, and not that it is deleted',
    pair: { a: 'delete server', b: 'make folder' },
    engines: BOTH,
    first: 'B',
    before: /^agent files\.makeFolder$/,
    sign: /B was answered 404 not_found instead of 409 server_deleted/,
    alsoIn: /^delete server × (delete files|move file|copy file|restore from trash|empty trash|put content)$/,
    isMended: true,
  },
  {
    what: 'who writes a file while its server is deleted is told of a link that is not valid',
    pair: { a: 'delete server', b: 'put content' },
    engines: BOTH,
    first: 'B',
    before: /^(agent forward|disk writev)$/,
    atDisk: true,
    sign: /B was answered 404 not_found instead of 409 server_deleted/,
    alsoIn: /^delete server × upload$/,
    isMended: true,
  },
  {
    what: 'a backup that is locked while another unlocks it is free in the list and locked in the store',
    pair: { a: 'lock backup', b: 'unlock backup' },
    engines: BOTH,
    first: 'B',
    before: /^begin$/,
    sign: /stored has "kept locked/,
    isMended: true,
  },
]

/** Whether a finding is one of those that are not mended yet. */
export function isExpected({ pair, faults }: Finding, engine: Engine): boolean {
  const isIn = ({ pair: { a, b }, alsoIn }: Fault) =>
    (a === pair.a && b === pair.b) || alsoIn?.test(`${pair.a} × ${pair.b}`)
  const known = FAULTS.filter((fault) => !fault.isMended && fault.engines.includes(engine) && isIn(fault))
  return faults.every((text) => known.some(({ sign }) => sign.test(text)))
}

/** The orders of a fault among those of its pair. */
export const ordersOf = (fault: Fault, { schedules }: Rehearsal): Schedule[] =>
  schedules.filter(({ first, point }) => first === fault.first && fault.before.test(point))
