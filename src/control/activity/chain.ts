// The hash chain: each entry's hash covers its content and the previous hash, with a key that is not in the database.
// With write access to only the database, nobody can make an altered chain look intact.
import { createHmac } from 'node:crypto'
import type { ActivityHeadRow, ActivityRow } from '../db/tables.ts'

export type UnhashedRow = Omit<ActivityRow, 'hash'>

export function hashEntry(key: Buffer, previous: string, row: UnhashedRow): string {
  const content = [
    previous,
    row.chain,
    row.seq,
    row.id,
    row.event,
    row.actor_type,
    row.actor_id,
    row.actor_name,
    row.source,
    row.ip,
    row.user_agent,
    row.request_id,
    row.properties,
    row.at,
  ]
  return createHmac('sha256', key).update(JSON.stringify(content)).digest('hex')
}

export function sealHead(key: Buffer, head: Omit<ActivityHeadRow, 'seal'>): string {
  const content = ['head', head.chain, head.seq, head.hash, head.at, head.purged_seq, head.purged_hash]
  return createHmac('sha256', key).update(JSON.stringify(content)).digest('hex')
}
