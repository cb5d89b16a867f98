// The log of the service for somebody who watches it: one line an entry, and only what differs between them.
import { type Paint, type Style, safe } from './text.ts'

const LEVELS: Record<number, { name: string; style?: Style }> = {
  10: { name: 'TRACE', style: 'dim' },
  20: { name: 'DEBUG', style: 'dim' },
  30: { name: 'INFO', style: 'green' },
  40: { name: 'WARN', style: 'yellow' },
  50: { name: 'ERROR', style: 'red' },
  60: { name: 'FATAL', style: 'red' },
}

interface Entry {
  level: number
  time: number
  pid?: number
  hostname?: string
  msg?: string
  err?: { message?: string; stack?: string }
  [field: string]: unknown
}

/** Where the logger writes its lines of JSON. What is in them comes from others too: none of it may steer the terminal. */
export function createLogLines(write: (text: string) => void, paint: Paint): { write(line: string): void } {
  return {
    write(line) {
      write(`${formatEntry(JSON.parse(line) as Entry, paint)}\n`)
    },
  }
}

function formatEntry({ level, time, pid: _pid, hostname: _hostname, msg = '', err, ...fields }: Entry, paint: Paint) {
  const { name, style } = LEVELS[level] ?? { name: String(level) }
  const label = name.padEnd(5)
  const values = Object.entries(fields).map(([field, value]) => paint('dim', safe(`${field}=${formatValue(value)}`)))
  const first = [paint('dim', clockOf(time)), style ? paint(style, label) : label, safe(msg), ...values].join('  ')
  const trace = err?.stack ?? err?.message
  return trace === undefined ? first : [first, ...trace.split('\n').map((line) => `    ${safe(line)}`)].join('\n')
}

/** As the clock on the wall has it: who watches has no need of the date. */
function clockOf(time: number): string {
  const at = new Date(time)
  const parts = [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, '0'))
  return parts.join(':')
}

const formatValue = (value: unknown) =>
  typeof value === 'string' && !/[\s"=]/.test(value) ? value : JSON.stringify(value)
