// YAML by the `yaml` package, which keeps comments and order. Every plain value is read as the text that it is, so that none is
// written in another way: numbers too large for JavaScript, leading zeros, yes and on. Blanks and quotes of a file that is
// changed may differ; one in which everything is set already stays as it is.
import {
  type Document,
  isMap,
  isScalar,
  isSeq,
  parse,
  parseDocument,
  Scalar,
  type ScalarTag,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml'
import type { VariableValue } from '../variables.ts'
import { ANY, ConfigFault, type ConfigSetting, isConditional, isWanted } from './config-edit.ts'

/** A key without a value has none: it is no empty text. */
const NOTHING: ScalarTag = {
  identify: (value) => value === null,
  default: true,
  tag: 'tag:yaml.org,2002:null',
  test: /^$/,
  resolve: () => null,
  stringify: () => '',
}

export function fillYaml(text: string, settings: readonly ConfigSetting[]): string {
  const document = parseDocument(text, {
    schema: 'failsafe',
    customTags: (tags) => [...tags, NOTHING],
    uniqueKeys: false,
    logLevel: 'silent',
  })
  const [error] = document.errors
  if (error) throw new ConfigFault(`it is not YAML: ${error.message.split('\n', 1)[0]}`, { cause: error })
  if (document.contents === null || (isScalar(document.contents) && document.contents.value === null))
    document.contents = document.createNode({}) as never
  const changes = settings.map((setting) => visit(document, document.contents, setting, 0))
  return changes.some(Boolean) ? document.toString({ lineWidth: 0 }) : text
}

/** Whether something was changed. */
function visit(document: Document, node: unknown, setting: ConfigSetting, depth: number): boolean {
  const name = setting.key[depth] ?? ''
  const isLast = depth === setting.key.length - 1
  if (!isMap(node) && !isSeq(node)) throw new ConfigFault(`${setting.key.slice(0, depth).join('.')} has no fields`)
  const keys = keysOf(node, name)
  if (keys.length === 0) {
    if (name === ANY || isConditional(setting)) return false
    if (isSeq(node)) throw new ConfigFault(`${setting.key.slice(0, depth + 1).join('.')} is not in the list`)
    node.set(scalarOf(name), nested(document, setting.key.slice(depth + 1), setting.value))
    return true
  }
  return keys
    .map((key) =>
      isLast ? replace(node, key, setting) : visit(document, innerOf(document, node, key), setting, depth + 1),
    )
    .some(Boolean)
}

/** A key that has nothing may be given fields. */
function innerOf(document: Document, node: YAMLMap | YAMLSeq, key: unknown): unknown {
  const inner = node.get(key, true)
  if (inner !== null && !(isScalar(inner) && inner.value === null)) return inner
  const made = document.createNode({})
  node.set(key, made)
  return made
}

function keysOf(node: YAMLMap | YAMLSeq, name: string): unknown[] {
  if (isSeq(node)) return node.items.flatMap((_, index) => (name === ANY || String(index) === name ? [index] : []))
  const keys = node.items.map(({ key }) => key)
  return keys.filter((key) => isScalar(key) && (name === ANY || String(key.value) === name))
}

function replace(node: YAMLMap | YAMLSeq, key: unknown, setting: ConfigSetting): boolean {
  const current = node.get(key, true)
  const text = isScalar(current) && current.value !== null ? String(current.value) : undefined
  const wanted = scalarOf(setting.value)
  const isSame = isScalar(current) && text === wanted.value && isQuoted(current) === isQuoted(wanted)
  if (isConditional(setting) ? !isWanted(setting, text) : isSame) return false
  // In place, so that the comment behind it stays.
  if (isScalar(current)) {
    const { type } = wanted
    Object.assign(current, { value: wanted.value, type })
    delete current.source
  } else node.set(key, wanted)
  return true
}

const isQuoted = ({ type }: Scalar) => type === 'QUOTE_DOUBLE' || type === 'QUOTE_SINGLE'

/** A text that something else might be read as, also by the YAML 1.1 that many games read, is in quotes. */
function scalarOf(value: VariableValue): Scalar<string> {
  const scalar = new Scalar(String(value))
  const isPlain = typeof value !== 'string' || isPlainText(value)
  scalar.type = isPlain ? 'PLAIN' : 'QUOTE_DOUBLE'
  return scalar
}

function isPlainText(text: string): boolean {
  if (text === '' || /^(?:[yn]|yes|no|on|off|true|false|null|~)$/i.test(text) || /^[\d.+<-]/.test(text)) return false
  try {
    return parse(text) === text
  } catch {
    return false
  }
}

function nested(document: Document, names: readonly string[], value: VariableValue): unknown {
  return names.reduceRight<unknown>((inner, name) => {
    if (name === ANY) return inner
    const map = document.createNode({}) as YAMLMap
    map.set(scalarOf(name), inner)
    return map
  }, scalarOf(value))
}
