// Entries as text for other programs: a line of JSON each, or a row of a spreadsheet.
import type { ActivityEntry } from '../../contract/activity.ts'

export async function* toNdjson(batches: AsyncIterable<ActivityEntry[]>): AsyncGenerator<string> {
  for await (const batch of batches) yield batch.map((entry) => `${JSON.stringify(entry)}\n`).join('')
}

const COLUMNS: Record<string, (entry: ActivityEntry) => string | null> = {
  id: (entry) => entry.id,
  timestamp: (entry) => entry.timestamp,
  event: (entry) => entry.event,
  serverId: (entry) => entry.serverId,
  actorType: (entry) => entry.actor.type,
  actorId: (entry) => entry.actor.id,
  actorName: (entry) => entry.actor.name,
  source: (entry) => entry.source,
  ip: (entry) => entry.ip,
  userAgent: (entry) => entry.userAgent,
  requestId: (entry) => entry.requestId,
  properties: (entry) => JSON.stringify(entry.properties),
}

export async function* toCsv(batches: AsyncIterable<ActivityEntry[]>): AsyncGenerator<string> {
  yield row(Object.keys(COLUMNS))
  const cells = Object.values(COLUMNS)
  for await (const batch of batches) yield batch.map((entry) => row(cells.map((cell) => cell(entry) ?? ''))).join('')
}

const row = (cells: readonly string[]) => `${cells.map(csvCell).join(',')}\r\n`

/** A cell that a spreadsheet would take for a formula is made text by an apostrophe. */
function csvCell(text: string): string {
  const safe = /^[\s]*[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

export function toServerSentEvent(entry: ActivityEntry): string {
  return `id: ${entry.id}\nevent: activity\ndata: ${JSON.stringify(entry)}\n\n`
}
