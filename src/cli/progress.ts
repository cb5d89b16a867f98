// A line that shows how far long work has come. Only on a terminal: in a log it would be noise.
import type { Writable } from 'node:stream'
import type { Progress } from '../sdk/index.ts'
import { formatSize } from './units.ts'

export interface ProgressLine {
  update(label: string, progress: Progress): void
  /** Takes the line away. */
  end(): void
}

const BAR = 24
const BAR_LEAST = 8
const REDRAW_MS = 100
const CLEAR = '\r\u001b[K'

export function createProgress(
  out: Writable & { isTTY?: boolean; columns?: number },
  { quiet = false, now = () => performance.now() }: { quiet?: boolean; now?: () => number } = {},
): ProgressLine {
  if (quiet || !out.isTTY) return { update() {}, end() {} }
  const startedAt = now()
  let drawnAt = Number.NEGATIVE_INFINITY
  return {
    update(label, progress) {
      if (now() - drawnAt < REDRAW_MS) return
      drawnAt = now()
      const columns = (out.columns ?? 80) - 1
      out.write(CLEAR + formatProgress(label, progress, now() - startedAt, columns).slice(0, columns))
    },
    end: () => void out.write(CLEAR),
  }
}

/** The bar takes the room that the words leave, or goes. */
export function formatProgress(
  label: string,
  progress: Progress,
  elapsedMs: number,
  columns = Number.POSITIVE_INFINITY,
): string {
  const share = shareOf(progress)
  const { bytesDone, bytesTotal, filesDone, filesTotal } = progress
  const perSecond = elapsedMs > 0 ? (bytesDone / elapsedMs) * 1000 : 0
  const parts = [label]
  if (share !== null) parts.push(`${String(Math.floor(share * 100)).padStart(3)}%`)
  if (bytesDone > 0 || bytesTotal)
    parts.push(formatSize(bytesDone) + (bytesTotal === null ? '' : ` of ${formatSize(bytesTotal)}`))
  if (filesDone > 0 || filesTotal) parts.push(`${filesDone}${filesTotal === null ? '' : ` of ${filesTotal}`} files`)
  if (perSecond >= 1) parts.push(`${formatSize(perSecond)}/s`)
  if (bytesTotal !== null && perSecond >= 1 && bytesDone < bytesTotal) {
    parts.push(`${Math.ceil((bytesTotal - bytesDone) / perSecond)} s left`)
  }
  if (share !== null) parts.splice(1, 1, `${barOf(share, columns - parts.join('  ').length)}${parts[1]}`)
  return parts.join('  ')
}

function barOf(share: number, room: number): string {
  // Two brackets and a blank.
  const width = Math.min(BAR, room - 3)
  if (width < BAR_LEAST) return ''
  const full = Math.round(share * width)
  return `[${'#'.repeat(full)}${'-'.repeat(width - full)}] `
}

function shareOf({ bytesDone, bytesTotal, filesDone, filesTotal }: Progress): number | null {
  if (bytesTotal) return Math.min(1, bytesDone / bytesTotal)
  return filesTotal ? Math.min(1, filesDone / filesTotal) : null
}
