// One page of the trash, newest first. It may hold any number of deletions, and one of any number of files.
import type { TrashItem } from '../../../contract/agent/agent-files.ts'
import type { Turns } from '../../../kit/waiting/turns.ts'
import { openIfStillThere } from '../sandbox/descent.ts'
import { type Directory, openOwnFolder } from '../sandbox/directory.ts'
import { newestBatches, presentItems } from './trash-batches.ts'
import { itemId, parseItemId } from './trash-records.ts'
import { readOrRecover } from './unreadable-records.ts'

export interface TrashPageRequest {
  /** Of the trash itself. */
  folder: string
  keepMs: number
  limit: number
  after: string | null
}

export async function listTrash(
  { folder, keepMs, limit, after }: TrashPageRequest,
  turn: Turns,
): Promise<{ items: TrashItem[]; next: string | null }> {
  using trash = openOwnFolder(folder)
  const items: TrashItem[] = []
  const last = after === null ? undefined : parseItemId(after)
  let isNext = (batch: string) => !last || batch <= last.batch
  for (;;) {
    const batches = await newestBatches(trash, turn, limit + 1, isNext)
    for (const batch of batches) {
      const from = batch === last?.batch ? last.index + 1 : 0
      for await (const item of itemsOf(trash, batch, keepMs, turn, from)) {
        if (items.length === limit) return { items, next: items.at(-1)?.id ?? null }
        items.push(item)
      }
    }
    const oldest = batches.length > limit ? batches.at(-1) : undefined
    if (oldest === undefined) return { items, next: null }
    isNext = (batch) => batch < oldest
  }
}

async function* itemsOf(
  trash: Directory,
  batch: string,
  keepMs: number,
  turn: Turns,
  from: number,
): AsyncGenerator<TrashItem> {
  // Somebody may have emptied it since it was found.
  const opened = openIfStillThere(trash, batch)
  if (!opened) return
  using folder = opened
  const record = readOrRecover(folder, batch)
  if (!record) return
  for await (const { index, path, kind } of presentItems(folder, record, turn, from))
    yield {
      id: itemId(batch, index),
      path,
      kind,
      reason: record.reason,
      deletedAt: new Date(record.deletedAt).toISOString(),
      expiresAt: new Date(record.deletedAt + keepMs).toISOString(),
    }
}
