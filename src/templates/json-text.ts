// JSON with the places of its values in the text, so that one of them can be replaced and all others stay as they are
// written: numbers too large for JavaScript, order, indentation, and the comments that many games allow.

export type JsonNode = { start: number; end: number } & (
  | { kind: 'object'; entries: { key: string; start: number; value: JsonNode }[] }
  | { kind: 'list'; items: JsonNode[] }
  | { kind: 'scalar'; value: string | number | boolean | null }
)

export class JsonFault extends Error {
  readonly at: number
  constructor(message: string, at: number) {
    super(message)
    this.at = at
  }
}

const DEPTH_MAX = 100
const BLANKS = /[\s\ufeff]*/y
const COMMENT = /\/\/[^\n]*|\/\*[\s\S]*?\*\//y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const WORD = /true|false|null/y

/** `isLenient`: comments and a comma after the last value, which games write and JSON does not know. */
export function parseJsonText(text: string, isLenient: boolean): JsonNode {
  let at = 0
  const fault = (message: string) => new JsonFault(message, at)
  const match = (form: RegExp): string | null => {
    form.lastIndex = at
    const found = form.exec(text)?.[0] ?? null
    if (found !== null) at += found.length
    return found
  }
  const skip = () => {
    do match(BLANKS)
    while (isLenient && match(COMMENT) !== null)
  }
  const string = (): string => {
    const end = endOfString(text, at)
    if (end === -1) throw fault('a text in double quotes is expected')
    try {
      const found: string = JSON.parse(text.slice(at, end))
      at = end
      return found
    } catch {
      throw fault('a text has a character or an escape that JSON does not know')
    }
  }
  const separator = (closing: string): boolean => {
    skip()
    if (text[at] === ',') {
      at++
      skip()
      if (text[at] !== closing) return true
      if (!isLenient) throw fault('a value is expected after the comma')
    }
    if (text[at] !== closing) throw fault(`a comma or ${closing} is expected`)
    at++
    return false
  }

  function value(depth: number): JsonNode {
    if (depth > DEPTH_MAX) throw fault('it is nested too deeply')
    skip()
    const start = at
    if (text[at] === '{') return object(start, depth)
    if (text[at] === '[') return list(start, depth)
    if (text[at] === '"') return { kind: 'scalar', value: string(), start, end: at }
    const word = match(WORD) ?? match(NUMBER)
    if (word === null) throw fault('a value is expected')
    return { kind: 'scalar', value: JSON.parse(word), start, end: at }
  }

  function object(start: number, depth: number): JsonNode {
    at++
    const entries: Extract<JsonNode, { kind: 'object' }>['entries'] = []
    skip()
    if (text[at] === '}') at++
    else
      do {
        skip()
        const keyStart = at
        const key = string()
        skip()
        if (text[at] !== ':') throw fault('a colon is expected')
        at++
        entries.push({ key, start: keyStart, value: value(depth + 1) })
      } while (separator('}'))
    return { kind: 'object', entries, start, end: at }
  }

  function list(start: number, depth: number): JsonNode {
    at++
    const items: JsonNode[] = []
    skip()
    if (text[at] === ']') at++
    else
      do items.push(value(depth + 1))
      while (separator(']'))
    return { kind: 'list', items, start, end: at }
  }

  const root = value(0)
  skip()
  if (at < text.length) throw fault('something follows the end')
  return root
}

/** After the quote that closes it, one with an even number of backslashes before it; -1 where there is none. */
function endOfString(text: string, start: number): number {
  if (text[start] !== '"') return -1
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let first = at
    while (text[first - 1] === '\\') first--
    if ((at - first) % 2 === 0) return at + 1
  }
  return -1
}

/** As JSON.parse would: of a key that is there twice the last counts, with keys that mean something to JavaScript as plain fields. */
export function plainOf(node: JsonNode): unknown {
  if (node.kind === 'scalar') return node.value
  if (node.kind === 'list') return node.items.map(plainOf)
  return Object.fromEntries(node.entries.map(({ key, value }) => [key, plainOf(value)]))
}
