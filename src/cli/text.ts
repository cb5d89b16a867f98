// Text for a terminal: safe, aligned, coloured where that is wanted.
import { styleText } from 'node:util'

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'
export type Paint = (style: Style, text: string) => string

export function createPaint(color: boolean): Paint {
  return color ? (style, text) => styleText(style, text, { validateStream: false }) : (_, text) => text
}

// Names, user agents and paths come from others: what would steer the terminal or turn the line around is shown, not obeyed.
const STEERING = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]/gu

export function safe(text: string): string {
  return text.replace(STEERING, (char) => `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`)
}

/** Bytes of a text, cleaned for a terminal as `safe` does, but for line breaks and tabs. */
export function createLineCleaner(): TransformStream<Uint8Array, string> {
  const decoder = new TextDecoder()
  // Whether a carriage return is half of a line break shows only with what follows it.
  let held = ''
  const clean = (text: string, isLast: boolean) => {
    const all = held + text
    held = !isLast && all.endsWith('\r') ? '\r' : ''
    const ready = all.slice(0, all.length - held.length).replaceAll('\r\n', '\n')
    return ready
      .split(/([\n\t])/)
      .map((part) => (part === '\n' || part === '\t' ? part : safe(part)))
      .join('')
  }
  return new TransformStream({
    transform: (chunk, controller) => controller.enqueue(clean(decoder.decode(chunk, { stream: true }), false)),
    flush: (controller) => controller.enqueue(clean(decoder.decode(), true)),
  })
}

const WIDE = /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60]/u

const ASCII = /^[ -~]*$/
let segmenter: Intl.Segmenter | undefined

/** What a terminal shows as one. A segmenter is made only where it is needed, as that takes a tenth of a whole command. */
function* charactersOf(text: string): Generator<string> {
  if (ASCII.test(text)) return yield* text
  segmenter ??= new Intl.Segmenter()
  for (const { segment } of segmenter.segment(text)) yield segment
}

/** How many columns a terminal gives to it. */
function widthOf(text: string): number {
  let width = 0
  for (const character of charactersOf(text)) width += WIDE.test(character) ? 2 : 1
  return width
}

export interface Column<T> {
  title: string
  cell: (row: T) => string
  right?: boolean
  style?: (row: T) => Style | undefined
}

const LAST_COLUMN_LEAST = 24

/** With `maxWidth`, the last column is cut so that a row stays on one line of the terminal. */
export function formatTable<T>(
  rows: readonly T[],
  columns: readonly Column<T>[],
  paint: Paint,
  maxWidth = Number.POSITIVE_INFINITY,
): string {
  const cells = rows.map((row) => columns.map((column) => safe(column.cell(row))))
  cutLastColumn(cells, columns, maxWidth)
  const widths = columns.map(({ title }, index) =>
    Math.max(title.length, ...cells.map((row) => widthOf(row[index] ?? ''))),
  )
  const line = (texts: readonly string[], style: (index: number) => Style | undefined) =>
    texts
      .map((text, index) => {
        const padding = ' '.repeat((widths[index] ?? 0) - widthOf(text))
        const chosen = style(index)
        const painted = chosen ? paint(chosen, text) : text
        if (columns[index]?.right) return padding + painted
        return index === texts.length - 1 ? painted : painted + padding
      })
      .join('  ')
      .trimEnd()
  const head = line(
    columns.map(({ title }) => title),
    () => 'bold',
  )
  const body = cells.map((texts, row) => line(texts, (index) => columns[index]?.style?.(rows[row] as T)))
  return [head, ...body].join('\n')
}

function cutLastColumn(cells: string[][], columns: readonly { title: string }[], maxWidth: number): void {
  const before = columns.slice(0, -1).map(({ title }, index) => {
    return 2 + Math.max(title.length, ...cells.map((row) => widthOf(row[index] ?? '')))
  })
  const room = Math.max(LAST_COLUMN_LEAST, maxWidth - before.reduce((sum, width) => sum + width, 0))
  for (const row of cells) {
    const last = row.at(-1) ?? ''
    if (widthOf(last) <= room) continue
    let [cut, width] = ['', 1]
    for (const character of charactersOf(last)) {
      width += widthOf(character)
      if (width > room) break
      cut += character
    }
    row[row.length - 1] = `${cut}…`
  }
}

/** Names and values, a line each, the values aligned. */
export function formatFields(fields: Record<string, string>, paint: Paint): string {
  const width = Math.max(...Object.keys(fields).map((name) => name.length))
  return Object.entries(fields)
    .map(([name, value]) => `${paint('dim', name.padEnd(width))}  ${safe(value)}`)
    .join('\n')
}
