// Reads the text of a template or an egg, JSON or YAML, into plain data, and knows the line of each value. What could
// mean two things (a key that is there twice, a number that JavaScript cannot hold) is refused and never guessed at.
import { isAlias, isMap, isScalar, isSeq, LineCounter, type ParsedNode, parseDocument, visit } from 'yaml'
import { TEMPLATE_DEPTH_MAX, TEMPLATE_VALUES_MAX } from '../contract/fixed-limits.ts'
import type { TemplateMediaType } from '../contract/games/templates.ts'
import { JsonFault, type JsonNode, parseJsonText, plainOf } from './json-text.ts'

export interface TemplateFault {
  /** A JSON pointer; empty for the whole. */
  path: string
  message: string
  /** From 1. */
  line: number
}

export interface TemplateDocument {
  value: unknown
  /** Keys that are there again later: what they say is not in the value. */
  repeated: TemplateFault[]
  lineOf(path: string): number
}

export class UnreadableTemplate extends Error {
  readonly faults: TemplateFault[]
  constructor(faults: TemplateFault[]) {
    super(faults.map(({ message }) => message).join('; '))
    this.faults = faults
  }
}

const refuse = (message: string, line = 1, path = '') => new UnreadableTemplate([{ path, message, line }])

export function readDocument(text: string, type: TemplateMediaType): TemplateDocument {
  const document = type === 'application/json' ? readJson(text) : readYaml(text)
  requireBounded(document)
  return document
}

function readJson(text: string): TemplateDocument {
  const lines = lineStarts(text)
  try {
    const root = parseJsonText(text, false)
    return {
      value: plainOf(root),
      repeated: repeatedKeys(root, (offset) => lineAt(lines, offset)),
      lineOf: (path) => lineAt(lines, jsonNodeAt(root, namesOf(path)).start),
    }
  } catch (error) {
    if (error instanceof JsonFault) throw refuse(`is not valid JSON: ${error.message}`, lineAt(lines, error.at))
    throw error
  }
}

export function repeatedKeys(root: JsonNode, lineAtOffset: (offset: number) => number): TemplateFault[] {
  const repeated: TemplateFault[] = []
  const left: { node: JsonNode; path: string }[] = [{ node: root, path: '' }]
  for (let next = left.pop(); next; next = left.pop()) {
    const { node, path } = next
    if (node.kind === 'list')
      for (const [index, item] of node.items.entries()) left.push({ node: item, path: `${path}/${index}` })
    if (node.kind !== 'object') continue
    const last = new Map(node.entries.map((entry) => [entry.key, entry]))
    for (const entry of node.entries) {
      const inner = `${path}/${escapeName(entry.key)}`
      if (last.get(entry.key) === entry) left.push({ node: entry.value, path: inner })
      else repeated.push({ path: inner, message: TWICE, line: lineAtOffset(entry.start) })
    }
  }
  return repeated
}

const TWICE = 'is there twice: the last one counts'

function jsonNodeAt(root: JsonNode, names: readonly string[]): { start: number } {
  let found: { start: number } = root
  let node: JsonNode | undefined = root
  for (const name of names) {
    const entry: { start: number; value: JsonNode } | undefined =
      node.kind === 'object' ? node.entries.findLast(({ key }) => key === name) : undefined
    node = entry?.value ?? (node.kind === 'list' ? node.items[Number(name)] : undefined)
    if (!node) return found
    found = entry ?? node
  }
  return found
}

function readYaml(text: string): TemplateDocument {
  const counter = new LineCounter()
  // Whether keys are unique is looked at below: the library compares each with each.
  const document = parse(() =>
    parseDocument(text, { lineCounter: counter, schema: 'core', uniqueKeys: false, logLevel: 'silent' }),
  )
  const faults = document.errors.map(({ message, pos }) => ({
    path: '',
    message: `is not valid YAML: ${message.split('\n', 1)[0]?.replace(/ at line \d+.*/, '')}`,
    line: counter.linePos(pos[0]).line,
  }))
  if (faults.length > 0) throw new UnreadableTemplate(faults)
  const lineAtOffset = (offset: number | undefined) => counter.linePos(offset ?? 0).line
  const repeated = requirePlain(document, lineAtOffset)
  return {
    repeated,
    value: parse(() => document.toJS({ maxAliasCount: 0 })),
    lineOf: (path) => lineAtOffset(yamlOffsetAt(document.contents, namesOf(path))),
  }
}

function parse<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof RangeError) throw refuse('is nested too deeply')
    throw error
  }
}

/** Nothing but maps with names, lists and plain values, each of them as it is written. Answers keys that are repeated. */
function requirePlain(
  document: ReturnType<typeof parseDocument>,
  lineAtOffset: (offset?: number) => number,
): TemplateFault[] {
  const repeated: TemplateFault[] = []
  visit(document, {
    Alias: (_, { range }) => {
      throw refuse('aliases are not taken: write the value out', lineAtOffset(range?.[0]))
    },
    Map: (_, { items }) => {
      const keys = new Set<string>()
      for (const { key } of items) {
        const offset = isScalar(key) ? key.range?.[0] : undefined
        if (!isScalar(key)) throw refuse('a key must be a plain value', lineAtOffset(offset))
        const name = String(key.value)
        if (keys.has(name)) repeated.push({ path: `/${escapeName(name)}`, message: TWICE, line: lineAtOffset(offset) })
        keys.add(name)
      }
    },
    Scalar: (_, { value, source, range }) => {
      if (typeof value === 'object' && value !== null)
        throw refuse('is a value of a type that is not taken: write it in quotes', lineAtOffset(range?.[0]))
      if (typeof value === 'number' && !isExact(value, source ?? ''))
        throw refuse(`${source} is no number that can be kept: write it in quotes`, lineAtOffset(range?.[0]))
    },
  })
  return repeated
}

const isExact = (value: number, source: string) => Number.isSafeInteger(value) || /\d[.eE]/.test(source)

function yamlOffsetAt(contents: ParsedNode | null, names: readonly string[]): number | undefined {
  let offset = contents?.range[0]
  let node: unknown = contents
  for (const name of names) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === name)
      if (!pair) return offset
      offset = isScalar(pair.key) ? pair.key.range?.[0] : offset
      node = pair.value
    } else if (isSeq(node)) {
      node = node.items[Number(name)]
      if (!isScalar(node) && !isMap(node) && !isSeq(node)) return offset
      offset = node.range?.[0]
    } else return offset
    if (isAlias(node)) return offset
  }
  return offset
}

function requireBounded({ value, lineOf }: TemplateDocument): void {
  const fault = boundFault(value)
  if (fault) throw refuse(fault.message, lineOf(fault.path), fault.path)
}

/** What of it is more than a template may have. Without recursion, and before anything is made of it. */
export function boundFault(value: unknown): { path: string; message: string } | null {
  let values = 0
  const left = [{ value, path: '', depth: 0 }]
  for (let next = left.pop(); next; next = left.pop()) {
    const { path, depth } = next
    if (++values > TEMPLATE_VALUES_MAX) return { path: '', message: `has more than ${TEMPLATE_VALUES_MAX} values` }
    if (depth > TEMPLATE_DEPTH_MAX) return { path, message: 'is nested too deeply' }
    if (typeof next.value === 'number' && !isKept(next.value))
      return { path, message: 'is no number that can be kept: write it in quotes' }
    if (typeof next.value !== 'object' || next.value === null) continue
    for (const [name, inner] of Object.entries(next.value)) {
      const innerPath = `${path}/${escapeName(name)}`
      if (name === '__proto__') return { path: innerPath, message: 'is no name that is taken' }
      left.push({ value: inner, path: innerPath, depth: depth + 1 })
    }
  }
  return null
}

const isKept = (value: number) => Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))

/** As in a JSON pointer. */
export const escapeName = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1')
const namesOf = (path: string) =>
  path
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))

function lineStarts(text: string): number[] {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}

function lineAt(starts: readonly number[], offset: number): number {
  let [low, high] = [0, starts.length - 1]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if ((starts[middle] ?? 0) <= offset) low = middle
    else high = middle - 1
  }
  return low + 1
}
