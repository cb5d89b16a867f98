// A record that a full disk has cut short, or a failing one has spoiled: what it can no longer say is found out from the
// batch itself, so that its items can still be listed and restored. Nothing but its owner empties such a batch.
import { opendirSync, readFileSync } from 'node:fs'
import { hasCode } from '../../../kit/files/errno.ts'
import { timeOfId } from '../../../kit/ids.ts'
import { kindOf } from '../reading/entries.ts'
import { addressOf, type Directory, statsIfThere } from '../sandbox/directory.ts'
import { hasItems } from './trash-batches.ts'
import { isSlotName, RECORD, readRecord, type TrashRecord } from './trash-records.ts'

const ITEMS = '"items":['
const ITEM = /(?:^|,)(\{"path":"(?:[^"\\]|\\.)*","kind":"[a-z]+"\})/y

export const isUnreadable = (folder: Directory): boolean => readRecord(folder) === undefined && hasItems(folder)

/** As `readRecord`, also where the record cannot be read; undefined only where the batch is empty then. */
export function readOrRecover(folder: Directory, batch: string): TrashRecord | undefined {
  const record = readRecord(folder)
  if (record || !hasItems(folder)) return record
  const text = textOf(folder)
  const items = itemsAtItsBeginning(text)
  for (const slot of slotsIn(folder)) {
    const stats = statsIfThere(folder, slot)
    if (stats) items[Number.parseInt(slot, 16)] ??= { path: `/recovered-${slot}`, kind: kindOf(stats) }
  }
  const reason = text.includes('"reason":"replaced"') ? 'replaced' : 'deleted'
  return { version: 1, reason, deletedAt: timeOfId('trs', batch) ?? 0, items }
}

/** Up to where it was cut: beyond that nothing says which item an entry is of. */
function itemsAtItsBeginning(text: string): TrashRecord['items'] {
  const start = text.indexOf(ITEMS)
  const rest = start === -1 ? '' : text.slice(start + ITEMS.length)
  const items: TrashRecord['items'] = []
  const pattern = new RegExp(ITEM)
  for (let found = pattern.exec(rest); found; found = pattern.exec(rest)) {
    const item = parsed(found[1] ?? '')
    if (!item) break
    items.push(item)
  }
  return items
}

function parsed(text: string): TrashRecord['items'][number] | undefined {
  try {
    return JSON.parse(text) as TrashRecord['items'][number]
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function textOf(folder: Directory): string {
  try {
    return readFileSync(addressOf(folder, RECORD), 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return ''
    throw error
  }
}

function slotsIn(folder: Directory): string[] {
  using reader = opendirSync(folder.address, { encoding: 'latin1' })
  const slots: string[] = []
  for (let entry = reader.readSync(); entry; entry = reader.readSync())
    if (isSlotName(entry.name)) slots.push(entry.name)
  return slots
}
