// What one request may cost at most, stated by each operation and printed in docs/limits.md: how much memory is held for
// it, and how long one turn of the event loop may take for it, whatever data the tenant has.

export interface Bound {
  /** In memory for one request at a time, beyond what the connection itself takes. */
  heldBytes: number
  /** Of processor time on the main thread, without a turn for anybody else. */
  turnMs: number
  /** What keeps it so. */
  by: string
}

const KIB = 1024
const MIB = 1024 * KIB

export const BOUNDS = {
  rows: { heldBytes: 256 * KIB, turnMs: 20, by: 'a fixed number of rows' },
  body: { heldBytes: 8 * MIB, turnMs: 50, by: 'the JSON body of at most 1 MiB, and a fixed number of rows' },
  tokenServers: { heldBytes: 1 * MIB, turnMs: 20, by: 'the 1,000 servers that a token may be for' },
  page: { heldBytes: 4 * MIB, turnMs: 50, by: 'a page of at most 100 rows' },
  job: { heldBytes: 8 * MIB, turnMs: 50, by: 'the body; the work itself is a job, which yields' },
  activity: {
    heldBytes: 4 * MIB,
    turnMs: 50,
    by: 'batches of rows; the next is read when the reader has taken the last',
  },
  chain: { heldBytes: 4 * MIB, turnMs: 50, by: 'batches of rows, with a turn for others after each' },
  backups: { heldBytes: 8 * MIB, turnMs: 100, by: 'the number of backups that a server may have' },
  console: {
    heldBytes: 16 * MIB,
    turnMs: 50,
    by: 'a page of at most 500 lines of at most 16 KiB; a segment of 1 MiB is read at a time, with a turn for others after each',
  },
  stats: { heldBytes: 2 * MIB, turnMs: 50, by: 'one file of fixed size, of which at most 1,440 points are sent' },
  players: { heldBytes: 256 * KIB, turnMs: 20, by: 'at most 200 names; the game is asked by a thread of its own' },
  store: { heldBytes: 64 * MIB, turnMs: 100, by: 'the number of backups in the store; needs a token for everything' },
  zones: { heldBytes: 1 * MIB, turnMs: 50, by: 'the names of one zone in the configuration' },
  path: { heldBytes: 256 * KIB, turnMs: 20, by: 'one path' },
  paths: {
    heldBytes: 32 * MIB,
    turnMs: 100,
    by: 'at most 1,000 paths of at most 128 names, gone through in turns',
  },
  form: {
    heldBytes: 64 * MIB,
    turnMs: 100,
    by: 'at most 250,000 names in 4 MiB of paths, gone through in turns; the bytes come in chunks',
  },
  directory: { heldBytes: 4 * MIB, turnMs: 20, by: 'a page is kept; names are read in turns' },
  tree: { heldBytes: 4 * MIB, turnMs: 20, by: 'the tree is walked in turns that its server shares with all others' },
  preview: {
    heldBytes: 4 * MIB,
    turnMs: 100,
    by: 'patterns of at most 32 KiB; the tree is walked for 5 seconds, in turns that its server shares with all others',
  },
  trash: { heldBytes: 32 * MIB, turnMs: 100, by: 'a page is kept; the trash is read in turns, one record at a time' },
  bytes: { heldBytes: 8 * MIB, turnMs: 20, by: 'chunks; the next is read when the last was taken' },
  search: { heldBytes: 4 * MIB, turnMs: 20, by: 'a thread of its own, 20 seconds, and the share of its server' },
  template: {
    heldBytes: 32 * MIB,
    turnMs: 50,
    by: 'the body of at most 1 MiB, which is read in a thread of its own with a limit of time and memory',
  },
  manifest: { heldBytes: 16 * MIB, turnMs: 100, by: 'a page is kept; the manifest is read a chunk at a time' },
} as const satisfies Record<string, Bound>
