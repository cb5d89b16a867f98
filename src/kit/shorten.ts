// Cuts a value down to what fits into a number of bytes as JSON, and says what was left out. Pure: the same value gives
// the same text every time.

/** How much of a text is kept; less is tried where even one item of each list is too much. */
const TEXT_CHARS = [4096, 1024, 256, 64]
const ELLIPSIS = '…'

/**
 * Lists keep their first items and texts their beginning. The field `cut` then holds, by JSON pointer, how many items or
 * characters were left out there.
 */
export function jsonWithin(value: object, maxBytes: number): string {
  const whole = JSON.stringify(value)
  return fits(whole, maxBytes) ? whole : cutDown(JSON.parse(whole), maxBytes)
}

/** The same as a value; the one that was given if it fits. */
export function shortened<T extends object>(value: T, maxBytes: number): T | Record<string, unknown> {
  const whole = JSON.stringify(value)
  return fits(whole, maxBytes) ? value : JSON.parse(cutDown(JSON.parse(whole), maxBytes))
}

/** The same for what is JSON already. */
export function parsedWithin(text: string, maxBytes: number): Record<string, unknown> {
  const value = JSON.parse(text)
  return fits(text, maxBytes) ? value : JSON.parse(cutDown(value, maxBytes))
}

function cutDown(plain: object, maxBytes: number): string {
  for (const maxChars of TEXT_CHARS) {
    const text = withMostItems(plain, maxChars, maxBytes)
    if (text !== undefined) return text
  }
  return JSON.stringify({ cut: { '': Object.keys(plain).length } })
}

/** A character takes three bytes at most; counting them is only worth it near the limit. */
const fits = (text: string, maxBytes: number) => text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes

function withMostItems(value: object, maxChars: number, maxBytes: number): string | undefined {
  const textWith = (maxItems: number) => {
    const cut: Record<string, number> = {}
    const short = shorten(value, { maxItems, maxChars, cut }, '')
    return JSON.stringify({ ...(short as object), cut })
  }
  let best: string | undefined
  for (let low = 1, high = Math.max(1, longestList(value)); low <= high; ) {
    const middle = Math.floor((low + high) / 2)
    const text = textWith(middle)
    if (fits(text, maxBytes)) {
      best = text
      low = middle + 1
    } else high = middle - 1
  }
  return best
}

interface Bounds {
  maxItems: number
  maxChars: number
  cut: Record<string, number>
}

function shorten(value: unknown, bounds: Bounds, pointer: string): unknown {
  const { maxItems, maxChars, cut } = bounds
  if (typeof value === 'string') {
    if (value.length <= maxChars) return value
    const kept = beginningOf(value, maxChars)
    cut[pointer] = value.length - kept.length
    return kept + ELLIPSIS
  }
  if (Array.isArray(value)) {
    if (value.length > maxItems) cut[pointer] = value.length - maxItems
    return value.slice(0, maxItems).map((item, index) => shorten(item, bounds, `${pointer}/${index}`))
  }
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).map(([name, field]) => [name, shorten(field, bounds, `${pointer}/${name}`)])
  return Object.fromEntries(fields)
}

/** Never half of a character. */
function beginningOf(text: string, maxChars: number): string {
  const kept = text.slice(0, maxChars)
  return kept.isWellFormed() || !text.isWellFormed() ? kept : kept.slice(0, -1)
}

function longestList(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const inside = Object.values(value).reduce((most, item) => Math.max(most, longestList(item)), 0)
  return Array.isArray(value) ? Math.max(value.length, inside) : inside
}
