// Follows a chain from where retention has cut it to its head and names the first entry that does not fit.
import type { Verification } from '../../contract/activity.ts'
import type { ActivityHeadRow, ActivityRow, Db } from '../db/tables.ts'
import { hashEntry } from './chain.ts'
import { entriesAfter, findHead, listHeads } from './store.ts'

type Fault = NonNullable<Verification['fault']>
interface ChainResult {
  entries: number
  fault: Fault | null
}

const BATCH = 1000

export async function verifyAll(db: Db, key: Buffer): Promise<Verification> {
  let chains = 0
  let entries = 0
  let after: string | null = null
  for (;;) {
    const heads: ActivityHeadRow[] = await listHeads(db, after, BATCH)
    for (const head of heads) {
      const result = await verifyHead(db, key, head)
      chains++
      entries += result.entries
      if (result.fault) return { intact: false, chains, entries, fault: result.fault }
    }
    if (heads.length < BATCH) break
    after = heads.at(-1)?.chain ?? null
  }
  const fault = await findHeadless(db)
  return { intact: fault === null, chains, entries, fault }
}

export async function verifyChain(db: Db, key: Buffer, chain: string): Promise<Verification> {
  const head = await findHead(db, chain)
  const { entries, fault } = head ? await verifyHead(db, key, head) : { entries: 0, fault: headless(chain) }
  return { intact: fault === null, chains: 1, entries, fault }
}

async function verifyHead(db: Db, key: Buffer, head: ActivityHeadRow): Promise<ChainResult> {
  let previous = head.purged_hash
  let position = head.purged_seq
  const entries = () => position - head.purged_seq
  const [oldest] = await entriesAfter(db, head.chain, -1, 1)
  if (oldest && oldest.seq <= head.purged_seq) return { entries: 0, fault: inserted(oldest) }
  for (;;) {
    const rows = await entriesAfter(db, head.chain, position, BATCH)
    for (const [index, row] of rows.entries()) {
      const fault = faultOf(key, previous, position + 1, row, rows[index + 1], head)
      if (fault) return { entries: entries(), fault }
      previous = row.hash
      position++
    }
    if (rows.length < BATCH) break
    await new Promise((resolve) => setImmediate(resolve))
  }
  // Entries may have been written since the head was read; those that it speaks of must be there.
  if (position < head.seq) return { entries: entries(), fault: removed(head.chain, position + 1) }
  return { entries: entries(), fault: null }
}

function faultOf(
  key: Buffer,
  previous: string,
  position: number,
  row: ActivityRow,
  next: ActivityRow | undefined,
  head: ActivityHeadRow,
): Fault | null {
  if (row.seq !== position) return removed(row.chain, position)
  if (row.hash !== hashEntry(key, previous, row)) {
    const nextFits = next !== undefined && next.hash === hashEntry(key, previous, { ...next, seq: position })
    return nextFits ? inserted(row) : altered(row)
  }
  if (position === head.seq && row.hash !== head.hash) {
    const detail = 'The head of the chain does not have the hash of its newest entry.'
    return { kind: 'head', ...place(row), detail }
  }
  return null
}

async function findHeadless(db: Db): Promise<Fault | null> {
  const missing = await db
    .selectFrom('servers')
    .leftJoin('activity_heads', 'activity_heads.chain', 'servers.id')
    .select('servers.id')
    .where('activity_heads.chain', 'is', null)
    .limit(1)
    .executeTakeFirst()
  return missing ? headless(missing.id) : null
}

const place = (row: ActivityRow) => ({ serverId: row.chain || null, entryId: row.id, position: row.seq })
const altered = (row: ActivityRow): Fault => ({
  kind: 'altered',
  ...place(row),
  detail: 'The entry is not as it was written.',
})
const inserted = (row: ActivityRow): Fault => ({
  kind: 'inserted',
  ...place(row),
  detail: 'The entry was not written by us.',
})
const removed = (chain: string, position: number): Fault => ({
  kind: 'removed',
  serverId: chain || null,
  entryId: null,
  position,
  detail: 'An entry is missing here.',
})
const headless = (chain: string): Fault => ({
  kind: 'head',
  serverId: chain || null,
  entryId: null,
  position: 0,
  detail: 'The whole chain of this server is gone.',
})
