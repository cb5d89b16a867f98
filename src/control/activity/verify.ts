// Follows a chain from where retention truncated it to its head and names the first entry that does not fit.
import type { Verification } from '../../contract/activity.ts'
import { createTurns } from '../../kit/waiting/turns.ts'
import type { ActivityHeadRow, ActivityRow, Db } from '../db/tables.ts'
import { hashEntry, sealHead } from './chain.ts'
import { entriesAfter, findHead, INSTANCE, type LightRow, listHeads, wholeRow } from './store.ts'

type Fault = NonNullable<Verification['fault']>
interface ChainResult {
  entries: number
  fault: Fault | null
}

interface Check {
  db: Db
  key: Buffer
  /** Fires when nobody waits for the result any more. */
  signal: AbortSignal
}

const BATCH = 250

export async function verifyAll(check: Check): Promise<Verification> {
  const { db } = check
  let chains = 0
  let entries = 0
  let after: string | null = null
  for (;;) {
    const heads: ActivityHeadRow[] = await listHeads(db, after, BATCH)
    for (const head of heads) {
      check.signal.throwIfAborted()
      const result = await verifyHead(check, head)
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

export async function verifyChain(check: Check, chain: string): Promise<Verification> {
  const head = await findHead(check.db, chain)
  const { entries, fault } = head ? await verifyHead(check, head) : { entries: 0, fault: headless(chain) }
  return { intact: fault === null, chains: 1, entries, fault }
}

/** Retention may cut the chain while it is being followed: then it is followed again from where it now begins. */
async function verifyHead(check: Check, head: ActivityHeadRow): Promise<ChainResult> {
  const result = await walk(check, head)
  if (!result.fault) return result
  const now = await findHead(check.db, head.chain)
  return now && now.purged_seq !== head.purged_seq ? verifyHead(check, now) : result
}

async function walk(check: Check, head: ActivityHeadRow): Promise<ChainResult> {
  const { db, key, signal } = check
  let previous = head.purged_hash
  let position = head.purged_seq
  const entries = () => position - head.purged_seq
  const turns = createTurns(head.chain, signal)
  const [oldest] = await entriesAfter(db, head.chain, -1, 1)
  if (oldest && oldest.seq <= head.purged_seq) return { entries: 0, fault: inserted(oldest) }
  for (;;) {
    signal.throwIfAborted()
    const rows = await entriesAfter(db, head.chain, position, BATCH)
    for (const [index, light] of rows.entries()) {
      // Entries of older versions are large.
      if (turns.due()) await turns.take()
      const row = light.properties === null ? await wholeRow(db, light) : (light as ActivityRow)
      if (!row || !fitsAt(key, previous, position + 1, row)) {
        const fault = row && (await faultAt(check, previous, position + 1, row, rows[index + 1]))
        return { entries: entries(), fault: fault ?? removed(head.chain, position + 1) }
      }
      const fault = headFault(row, head)
      if (fault) return { entries: entries(), fault }
      previous = row.hash
      position++
    }
    if (rows.length < BATCH) break
    await turns.take()
  }
  // Entries may have been written since the head was read; those that it speaks of must be there.
  if (position < head.seq) return { entries: entries(), fault: removed(head.chain, position + 1) }
  if (head.seal !== sealHead(key, head)) return { entries: entries(), fault: unsealed(head) }
  return { entries: entries(), fault: null }
}

const fitsAt = (key: Buffer, previous: string, position: number, row: ActivityRow) =>
  row.seq === position && row.hash === hashEntry(key, previous, row)

/** What is wrong with an entry that does not fit at its position. */
async function faultAt(
  { db, key }: Check,
  previous: string,
  position: number,
  row: ActivityRow,
  after: LightRow | undefined,
): Promise<Fault> {
  if (row.seq !== position) return removed(row.chain, position)
  const next = after && (await wholeRow(db, after))
  const nextFits = next !== undefined && next.hash === hashEntry(key, previous, { ...next, seq: position })
  return nextFits ? inserted(row) : altered(row)
}

function headFault(row: ActivityRow, head: ActivityHeadRow): Fault | null {
  if (row.seq !== head.seq || row.hash === head.hash) return null
  const detail = 'The head of the chain does not have the hash of its newest entry.'
  return { kind: 'head', ...place(row), detail }
}

/** A chain that must be there and has no head: that of the instance, of any server, of any entry. */
async function findHeadless(db: Db): Promise<Fault | null> {
  if (!(await findHead(db, INSTANCE))) return headless(INSTANCE)
  const missing = await db
    .selectFrom('servers')
    .leftJoin('activity_heads', 'activity_heads.chain', 'servers.id')
    .select('servers.id')
    .where('activity_heads.chain', 'is', null)
    .limit(1)
    .executeTakeFirst()
  if (missing) return headless(missing.id)
  for (let chain: string | undefined = INSTANCE; ; ) {
    // From chain to chain by the index, never over the entries in between.
    const after: string = chain
    const next = db.selectFrom('activity').select('chain').where('chain', '>', after).orderBy('chain').limit(1)
    chain = (await next.executeTakeFirst())?.chain
    if (chain === undefined) return null
    if (!(await findHead(db, chain))) return headless(chain)
  }
}

type Placed = Pick<ActivityRow, 'chain' | 'id' | 'seq'>
const place = (row: Placed) => ({ serverId: row.chain || null, entryId: row.id, position: row.seq })
const altered = (row: Placed): Fault => ({
  kind: 'altered',
  ...place(row),
  detail: 'The entry is not as it was written.',
})
const inserted = (row: Placed): Fault => ({
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
const unsealed = (head: ActivityHeadRow): Fault => ({
  kind: 'head',
  serverId: head.chain || null,
  entryId: null,
  position: head.seq,
  detail: 'The head of the chain is not as it was written: the chain may have been cut at either end.',
})
const headless = (chain: string): Fault => ({
  kind: 'head',
  serverId: chain || null,
  entryId: null,
  position: 0,
  detail: 'The head of this chain is gone, or the whole chain.',
})
