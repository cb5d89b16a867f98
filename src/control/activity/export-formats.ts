// Entries as text for other programs: one line of JSON each, or one row of a spreadsheet.
import type { ActivityEntry } from '../../contract/activity.ts'
import type { ActivityRow } from '../db/tables.ts'

/** Built from the row as it lies in the database: a million entries pass through here without one being taken apart. */
function ndjsonLine(row: ActivityRow): string {
  const text = JSON.stringify
  const actor = `{"type":"${row.actor_type}","id":${text(row.actor_id)},"name":${text(row.actor_name)}}`
  const caller = `"ip":${text(row.ip)},"userAgent":${text(row.user_agent)},"requestId":${text(row.request_id)}`
  return `{"id":"${row.id}","serverId":${text(row.chain || null)},"event":"${row.event}","actor":${actor},"source":"${row.source}",${caller},"properties":${row.properties},"timestamp":"${new Date(row.at).toISOString()}"}\n`
}

export async function* toNdjson(batches: AsyncIterable<ActivityRow[]>): AsyncGenerator<string> {
  for await (const batch of batches) yield batch.map(ndjsonLine).join('')
}

const COLUMNS: Record<string, (row: ActivityRow) => string | null> = {
  id: (row) => row.id,
  timestamp: (row) => new Date(row.at).toISOString(),
  event: (row) => row.event,
  serverId: (row) => row.chain || null,
  actorType: (row) => row.actor_type,
  actorId: (row) => row.actor_id,
  actorName: (row) => row.actor_name,
  source: (row) => row.source,
  ip: (row) => row.ip,
  userAgent: (row) => row.user_agent,
  requestId: (row) => row.request_id,
  properties: (row) => row.properties,
}

export async function* toCsv(batches: AsyncIterable<ActivityRow[]>): AsyncGenerator<string> {
  yield csvRow(Object.keys(COLUMNS))
  const cells = Object.values(COLUMNS)
  for await (const batch of batches) yield batch.map((row) => csvRow(cells.map((cell) => cell(row) ?? ''))).join('')
}

const csvRow = (cells: readonly string[]) => `${cells.map(csvCell).join(',')}\r\n`

/** A cell that a spreadsheet would take for a formula is made text by an apostrophe. */
function csvCell(text: string): string {
  const safe = /^[\s]*[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

export function toServerSentEvent(entry: ActivityEntry): string {
  return `id: ${entry.id}\nevent: activity\ndata: ${JSON.stringify(entry)}\n\n`
}
