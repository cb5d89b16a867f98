// How much of the backups stays on the machine once they are off-site (`GAMEKEEPER_KEEP_LOCAL`).
import { parseSize } from './sizes.ts'

/** Bytes of packs, or those written within a time. */
export type KeepLocal = { bytes: number } | { ms: number }

const DAY_MS = 24 * 3600_000
const DAYS = /^(\d{1,5})d$/

/** Such as `30d` or `200GB`. Undefined for what is neither. */
export function parseKeepLocal(text: string): KeepLocal | undefined {
  const [, days] = DAYS.exec(text) ?? []
  if (days !== undefined) return { ms: Number(days) * DAY_MS }
  const bytes = parseSize(text)
  return bytes !== undefined && Number.isSafeInteger(bytes) ? { bytes } : undefined
}
