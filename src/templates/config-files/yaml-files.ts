// YAML by the `yaml` package, which keeps comments and order. Blanks and quotes of a file that is changed may be written
// in another way; one in which everything is set already stays as it is.
import { type Document, isMap, isScalar, isSeq, parseDocument, type Scalar, type YAMLMap, type YAMLSeq } from 'yaml'
import type { VariableValue } from '../variables.ts'
import { ANY, ConfigFault, type ConfigSetting, isConditional, isWanted } from './config-edit.ts'

export function fillYaml(text: string, settings: readonly ConfigSetting[]): string {
  const document = parseDocument(text, { uniqueKeys: false, logLevel: 'silent' })
  const [error] = document.errors
  if (error) throw new ConfigFault(`it is not YAML: ${error.message.split('\n', 1)[0]}`, { cause: error })
  if (document.contents === null) document.contents = document.createNode({}) as never
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
    node.set(document.createNode(name), document.createNode(nested(setting.key.slice(depth + 1), setting.value)))
    return true
  }
  return keys
    .map((key) =>
      isLast ? replace(document, node, key, setting) : visit(document, node.get(key, true), setting, depth + 1),
    )
    .some(Boolean)
}

function keysOf(node: YAMLMap | YAMLSeq, name: string): unknown[] {
  if (isSeq(node)) return node.items.flatMap((_, index) => (name === ANY || String(index) === name ? [index] : []))
  const keys = node.items.map(({ key }) => key)
  return keys.filter((key) => isScalar(key) && (name === ANY || String(key.value) === name))
}

function replace(document: Document, node: YAMLMap | YAMLSeq, key: unknown, setting: ConfigSetting): boolean {
  const current = node.get(key, true)
  const value = isScalar(current) ? current.value : undefined
  const text = value === undefined || value === null ? undefined : String(value)
  if (isConditional(setting) ? !isWanted(setting, text) : value === setting.value) return false
  // In place, so that the comment behind it stays.
  if (isScalar(current)) {
    current.value = setting.value
    if (typeof setting.value !== 'string') delete current.type
    delete current.source
  } else node.set(key, document.createNode(setting.value) as Scalar)
  return true
}

const nested = (names: readonly string[], value: VariableValue): unknown =>
  names.reduceRight<unknown>((inner, name) => (name === ANY ? inner : { [name]: inner }), value)
