// `npm run limits`: writes docs/limits.md from the contract. A test compares the file with what this would write.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { LINK_OPERATIONS } from '../src/contract/files/link-operations.ts'
import * as limits from '../src/contract/fixed-limits.ts'
import { OPERATIONS } from '../src/contract/index.ts'

const at = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url))
export const LIMITS_FILE = at('docs/limits.md')

const UNITS = [
  { name: 'GiB', bytes: 1024 ** 3 },
  { name: 'MiB', bytes: 1024 ** 2 },
  { name: 'KiB', bytes: 1024 },
]

function inBytes(value: number): string {
  const unit = UNITS.find(({ bytes }) => value >= bytes && value % bytes === 0)
  return unit ? `${value / unit.bytes} ${unit.name}` : `${value} bytes`
}

function limitText(name: string, value: unknown): string {
  if (typeof value === 'object' && value !== null)
    return Object.entries(value)
      .map(([key, number]) => `${key} ${limitText(key, number)}`)
      .join(', ')
  if (typeof value !== 'number') return String(value)
  return /BYTES|Bytes/.test(name) ? inBytes(value) : value.toLocaleString('en')
}

/** Those behind links too, where they state more than chunks of bytes. */
export const BOUNDED = [...OPERATIONS, ...LINK_OPERATIONS].flatMap(({ id, bound }) => (bound ? [{ id, bound }] : []))

/** The comment above each limit, by its name; those without one share that of the group that they are in. */
function reasons(source: string): Map<string, string> {
  const found = new Map<string, string>()
  let comment: string[] = []
  for (const line of source.split('\n')) {
    const text = /^(?:\/\*\*| \*|\/\/) ?(.*?)(?: ?\*\/)?$/.exec(line)?.[1]
    const name = /^export const (\w+)/.exec(line)?.[1]
    if (name) found.set(name, comment.join(' ').trim())
    if (line === '') comment = []
    else if (/^\/(\*\*|\/)/.test(line)) comment = [text ?? '']
    else if (text !== undefined && text !== '/') comment.push(text)
  }
  return found
}

const row = (...cells: string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`

export function limitsDocument(): string {
  const comments = reasons(readFileSync(at('src/contract/fixed-limits.ts'), 'utf8'))
  return [
    '# Limits',
    '',
    'Made from the code by `npm run limits`; a test compares the two.',
    '',
    '## What a request may cost',
    '',
    'Whatever data a tenant has, a request holds no more memory than this at a time, and keeps the event loop no longer than',
    'this in one turn. A turn is counted in processor time of the main thread. Tests run the service under a watchdog that',
    'fails on any turn longer than 100 ms (`test/support/watchdog.ts`).',
    '',
    row('operation', 'memory held', 'longest turn', 'because of'),
    row('---', '---', '---', '---'),
    ...BOUNDED.map(({ id, bound }) => row(`\`${id}\``, inBytes(bound.heldBytes), `${bound.turnMs} ms`, bound.by)),
    '',
    '## What a tenant may have and ask for',
    '',
    row('limit', 'value', 'of what'),
    row('---', '---', '---'),
    ...[...comments].map(([name, reason]) =>
      row(`\`${name}\``, limitText(name, (limits as Record<string, unknown>)[name]), reason),
    ),
    '',
  ].join('\n')
}

if (import.meta.main) writeFileSync(LIMITS_FILE, limitsDocument())
