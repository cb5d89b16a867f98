// JSON, also with the comments that many games allow. Everything but the values that are set stays as it is written.
import { JsonFault, type JsonNode, parseJsonText } from '../json-text.ts'
import type { VariableValue } from '../variables.ts'
import {
  ANY,
  applySplices,
  ConfigFault,
  type ConfigSetting,
  isConditional,
  isWanted,
  literalOf,
  type Splice,
} from './config-edit.ts'

export function fillJson(text: string, settings: readonly ConfigSetting[]): string {
  // One after the other: a setting may belong into an object that the one before has made.
  return settings.reduce(setValue, text.trim() === '' ? '{}\n' : text)
}

function setValue(text: string, setting: ConfigSetting): string {
  const splices: Splice[] = []
  visit(parse(text), 0)
  return applySplices(text, splices)

  function visit(node: JsonNode, depth: number): void {
    const name = setting.key[depth]
    if (name === undefined) {
      replace(node)
      return
    }
    if (node.kind === 'scalar') throw new ConfigFault(`${setting.key.slice(0, depth).join('.')} has no fields`)
    const inner = innerOf(node, name)
    for (const child of inner) visit(child, depth + 1)
    if (inner.length > 0 || name === ANY || isConditional(setting)) return
    if (node.kind === 'list') throw new ConfigFault(`${setting.key.slice(0, depth + 1).join('.')} is not in the list`)
    splices.push(insertion(text, node, name, nested(setting.key.slice(depth + 1), setting.value)))
  }

  function replace(node: JsonNode): void {
    const current = node.kind === 'scalar' ? node.value : undefined
    const isSame = current === setting.value
    if (isSame && !isConditional(setting)) return
    if (isConditional(setting) && !isWanted(setting, current === undefined ? undefined : String(current))) return
    splices.push({ start: node.start, end: node.end, text: literalOf(setting.value) })
  }
}

function parse(text: string): JsonNode {
  try {
    return parseJsonText(text, true)
  } catch (error) {
    if (error instanceof JsonFault) throw new ConfigFault(`it is not JSON: ${error.message}`, { cause: error })
    throw error
  }
}

function innerOf(node: JsonNode & { kind: 'object' | 'list' }, name: string): JsonNode[] {
  if (node.kind === 'list') return name === ANY ? node.items : [node.items[Number(name)]].flatMap((item) => item ?? [])
  return node.entries.filter(({ key }) => name === ANY || key === name).map(({ value }) => value)
}

const nested = (names: readonly string[], value: VariableValue): unknown =>
  names.reduceRight<unknown>((inner, name) => (name === ANY ? inner : { [name]: inner }), value)

/** After the last field, indented as that is. */
function insertion(text: string, node: JsonNode & { kind: 'object' }, name: string, value: unknown): Splice {
  const field = `${JSON.stringify(name)}: `
  const last = node.entries.at(-1)
  if (!last) {
    const outer = indentationAt(text, node.start)
    const inner = `${outer}  `
    return { start: node.start, end: node.end, text: `{\n${inner}${field}${indented(value, inner)}\n${outer}}` }
  }
  const lineStart = text.lastIndexOf('\n', last.start) + 1
  const isOwnLine = text.slice(lineStart, last.start).trim() === ''
  const indentation = isOwnLine ? text.slice(lineStart, last.start) : ''
  const before = isOwnLine ? `,\n${indentation}` : ', '
  const { end } = last.value
  return {
    start: end,
    end,
    text: `${before}${field}${isOwnLine ? indented(value, indentation) : JSON.stringify(value)}`,
  }
}

const indented = (value: unknown, indentation: string) =>
  JSON.stringify(value, null, 2).replaceAll('\n', `\n${indentation}`)
const indentationAt = (text: string, at: number) =>
  /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', at) + 1))?.[0] ?? ''
