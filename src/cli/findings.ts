// What a command has looked at, what it found, and what to do about it.
import type { Context } from './context.ts'
import { type Style, safe } from './text.ts'

export interface Finding {
  check: string
  status: 'ok' | 'warn' | 'fail' | 'skip'
  detail: string
  /** What to do about it. */
  remedy?: string
}

const STYLES: Record<Finding['status'], Style> = { ok: 'green', warn: 'yellow', fail: 'red', skip: 'dim' }

export function formatFinding({ paint }: Context, { check, status, detail, remedy }: Finding): string {
  const line = `${paint(STYLES[status], status.padEnd(4))}  ${check.padEnd(14)}  ${safe(detail)}`
  return remedy && status !== 'ok' ? `${line}\n      ${' '.repeat(14)}  ${paint('bold', '→')} ${safe(remedy)}` : line
}
