// TOML, edited in place: libraries that read it lose the comments. Every value of the file is gone over by its own rules, so
// that nothing within a text or a list is taken for a key.
import type { VariableValue } from '../variables.ts'
import {
  ANY,
  applySplices,
  ConfigFault,
  type ConfigSetting,
  isConditional,
  isWanted,
  lineBreakOf,
  literalOf,
} from './config-edit.ts'

interface TomlEntry {
  path: string[]
  start: number
  end: number
}

interface TomlTable {
  path: string[]
  /** After the last entry, or the header: where another one goes. */
  end: number
}

const BLANKS = /[ \t]*/y
const BARE = /[A-Za-z0-9_-]+/y
const PLAIN = /[^\s,\]}#]+/y

export function fillToml(text: string, settings: readonly ConfigSetting[]): string {
  return settings.reduce(setValue, text)
}

function setValue(text: string, setting: ConfigSetting): string {
  const { entries, tables } = readToml(text)
  const { key } = setting
  const found = entries.filter(({ path }) => isAt(path, key))
  if (found.length > 0) {
    const splices = found
      .filter(({ start, end }) => isMeant(setting, text.slice(start, end)))
      .map(({ start, end }) => ({ start, end, text: literalOf(setting.value) }))
    return applySplices(text, splices)
  }
  if (isConditional(setting) || key.includes(ANY)) return text
  const inside = entries.find(({ path }) => path.length < key.length && isAt(path, key.slice(0, path.length)))
  if (inside) throw new ConfigFault(`${inside.path.join('.')} is a value: nothing can be set in it`)
  return addEntry(text, tables, key, setting.value)
}

/** With its type: "1" is not 1. */
const isMeant = (setting: ConfigSetting, source: string) =>
  isConditional(setting) ? isWanted(setting, currentOf(source)) : source !== literalOf(setting.value)

const isAt = (path: readonly string[], key: readonly string[]) =>
  path.length === key.length && key.every((name, index) => name === ANY || name === path[index])

function addEntry(text: string, tables: readonly TomlTable[], key: readonly string[], value: VariableValue): string {
  const eol = lineBreakOf(text)
  const names = key.slice(0, -1)
  const line = `${nameOf(key.at(-1) ?? '')} = ${literalOf(value)}`
  const table = tables.findLast(({ path }) => isAt(path, names))
  if (table) {
    const before = text.slice(0, table.end)
    const isFresh = before === '' || before.endsWith('\n')
    const rest = text.slice(table.end)
    const after = isFresh ? eol : rest === '' ? eol : ''
    return `${before}${isFresh ? '' : eol}${line}${after}${rest}`
  }
  const gap = text === '' || text.endsWith('\n') ? '' : eol
  return `${text}${gap}${eol}[${names.map(nameOf).join('.')}]${eol}${line}${eol}`
}

const nameOf = (name: string) => (/^[A-Za-z0-9_-]+$/.test(name) ? name : JSON.stringify(name))

/** As text, to be compared with. */
function currentOf(source: string): string {
  if (source.startsWith("'")) return source.slice(1, -1)
  if (!source.startsWith('"')) return source
  try {
    return String(JSON.parse(source))
  } catch {
    return source
  }
}

function readToml(text: string): { entries: TomlEntry[]; tables: TomlTable[] } {
  const entries: TomlEntry[] = []
  let table: TomlTable = { path: [], end: 0 }
  const tables = [table]
  const counts = new Map<string, number>()
  const scanner = createScanner(text)
  for (scanner.skipBlankLines(); !scanner.isDone(); scanner.skipBlankLines()) {
    if (scanner.peek() === '[') {
      const { path, isList } = scanner.header()
      const name = JSON.stringify(path)
      if (isList) counts.set(name, (counts.get(name) ?? -1) + 1)
      table = { path: isList ? [...path, String(counts.get(name))] : path, end: scanner.at() }
      tables.push(table)
    } else {
      const path = scanner.key()
      scanner.expect('=')
      const { start, end } = scanner.value()
      entries.push({ path: [...table.path, ...path], start, end })
      scanner.endOfLine()
      table.end = end
    }
  }
  for (const each of tables) each.end = lineEnd(text, each.end)
  return { entries, tables }
}

/** Before the line break, after a comment. */
function lineEnd(text: string, at: number): number {
  if (at === 0) return 0
  const end = text.indexOf('\n', at)
  if (end === -1) return text.length
  return text[end - 1] === '\r' ? end - 1 : end
}

function createScanner(text: string) {
  let at = 0
  const fault = (message: string) =>
    new ConfigFault(`it is not TOML: ${message} in line ${text.slice(0, at).split('\n').length}`)
  const match = (form: RegExp): string => {
    form.lastIndex = at
    const found = form.exec(text)?.[0] ?? ''
    at += found.length
    return found
  }
  const skipComment = () => {
    match(BLANKS)
    if (text[at] === '#') at = text.indexOf('\n', at) === -1 ? text.length : text.indexOf('\n', at)
  }
  const expect = (sign: string) => {
    match(BLANKS)
    if (!text.startsWith(sign, at)) throw fault(`${sign} is expected`)
    at += sign.length
    match(BLANKS)
  }
  const skipBlankLines = () => {
    for (;;) {
      skipComment()
      if (text[at] === '\r') at++
      if (text[at] !== '\n') return
      at++
    }
  }

  /** To after its closing quote. */
  function string(): void {
    const quote = text[at] ?? ''
    const isLong = text.startsWith(quote.repeat(3), at)
    const closing = isLong ? quote.repeat(3) : quote
    at += closing.length
    for (; at < text.length; at++) {
      if (text.startsWith(closing, at)) {
        at += closing.length
        // A long text may end in up to two quotes of its own.
        while (isLong && text[at] === quote) at++
        return
      }
      if (text[at] === '\\' && quote === '"') at++
      else if (text[at] === '\n' && !isLong) break
    }
    throw fault('a text is not closed')
  }

  function key(): string[] {
    const names: string[] = []
    do {
      match(BLANKS)
      const start = at
      if (text[at] === '"' || text[at] === "'") string()
      else if (match(BARE) === '') throw fault('a key is expected')
      names.push(currentOf(text.slice(start, at)))
      match(BLANKS)
    } while (text[at] === '.' && at++ >= 0)
    return names
  }

  /** Lists and inline tables are skipped as a whole, whatever is in them. */
  function value(): { start: number; end: number } {
    const start = at
    let depth = 0
    do {
      if (depth > 0) skipBlankLines()
      const sign = text[at]
      if (sign === undefined) throw fault('a value is not closed')
      if (sign === '[' || sign === '{') depth++
      if (sign === ']' || sign === '}') depth--
      if (sign === '"' || sign === "'") string()
      else if ('[]{},='.includes(sign)) at++
      else if (match(PLAIN) === '') throw fault('a value is expected')
    } while (depth > 0)
    // A date and a time may have a blank between them.
    if (/^\d{4}-\d\d-\d\d$/.test(text.slice(start, at)) && /^ \d\d:/.test(text.slice(at, at + 4))) {
      at++
      match(PLAIN)
    }
    return { start, end: at }
  }

  return {
    at: () => at,
    peek: () => text[at],
    isDone: () => at >= text.length,
    skipBlankLines,
    key,
    value,
    expect,
    endOfLine() {
      skipComment()
      if (text[at] === '\r') at++
      if (at < text.length && text[at] !== '\n') throw fault('the end of the line is expected')
    },
    header(): { path: string[]; isList: boolean } {
      const isList = text.startsWith('[[', at)
      at += isList ? 2 : 1
      const path = key()
      expect(isList ? ']]' : ']')
      return { path, isList }
    },
  }
}
