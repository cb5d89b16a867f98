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
  return wholeWithin(value, maxBytes) ?? cutDown(value, maxBytes)
}

/** The same as a value; the one that was given if it fits. */
export function shortened<T extends object>(value: T, maxBytes: number): T | Record<string, unknown> {
  return wholeWithin(value, maxBytes) === undefined ? JSON.parse(cutDown(value, maxBytes)) : value
}

/** The same for what is JSON already. */
export function parsedWithin(text: string, maxBytes: number): Record<string, unknown> {
  const value = JSON.parse(text)
  return fits(text, maxBytes) ? value : JSON.parse(cutDown(value, maxBytes))
}

/** Undefined where it does not fit, which is found out without making a text of all of it. */
function wholeWithin(value: object, maxBytes: number): string | undefined {
  if (leastChars(value, maxBytes) > maxBytes) return undefined
  const whole = JSON.stringify(value)
  return fits(whole, maxBytes) ? whole : undefined
}

/** As JSON has it: dates and their like say themselves what they are. */
function plainOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('toJSON' in value)) return value
  return typeof value.toJSON === 'function' ? value.toJSON() : value
}

/** How many characters its texts take at least; not counted on once that is too many. */
function leastChars(given: unknown, enough: number): number {
  const value = plainOf(given)
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  let chars = 0
  for (const item of Object.values(value)) {
    chars += leastChars(item, enough - chars)
    if (chars > enough) break
  }
  return chars
}

function cutDown(value: object, maxBytes: number): string {
  for (const maxChars of TEXT_CHARS) {
    const text = withMostItems(value, maxChars, maxBytes)
    if (text !== undefined) return text
  }
  return JSON.stringify({ cut: { '': Object.keys(value).length } })
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
  const fitsWith = (maxItems: number) => {
    const text = textWith(maxItems)
    if (!fits(text, maxBytes)) return false
    best = text
    return true
  }
  const most = Math.max(1, longestList(value))
  // By doubling, so that no text is tried that is much longer than what fits.
  let items = 1
  while (fitsWith(items)) {
    if (items === most) return best
    items = Math.min(2 * items, most)
  }
  for (let low = Math.floor(items / 2) + 1, high = items - 1; low <= high; ) {
    const middle = Math.floor((low + high) / 2)
    if (fitsWith(middle)) low = middle + 1
    else high = middle - 1
  }
  return best
}

interface Bounds {
  maxItems: number
  maxChars: number
  cut: Record<string, number>
}

function shorten(given: unknown, bounds: Bounds, pointer: string): unknown {
  const value = plainOf(given)
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

function longestList(given: unknown): number {
  const value = plainOf(given)
  if (typeof value !== 'object' || value === null) return 0
  const inside = Object.values(value).reduce((most, item) => Math.max(most, longestList(item)), 0)
  return Array.isArray(value) ? Math.max(value.length, inside) : inside
}
