// XML, edited in place: the text of elements, or an attribute, by the way to it. Everything else stays as it is written.
import {
  ANY,
  applySplices,
  ConfigFault,
  type ConfigSetting,
  isConditional,
  isWanted,
  type Splice,
} from './config-edit.ts'

interface XmlElement {
  name: string
  attributes: Map<string, { value: string; start: number; end: number }>
  children: XmlElement[]
  /** Of the tag that opens it. */
  start: number
  openEnd: number
  /** Of the tag that closes it; where an empty one has none, the end of the tag. */
  closeStart: number
  isEmpty: boolean
}

const DEPTH_MAX = 100
const NAME = /[^\s<>/='"]+/y
const BLANKS = /\s*/y
const PREDICATE = /^([^[]+)\[@([\w.:-]+)='([^']*)'\]$/

export function fillXml(text: string, settings: readonly ConfigSetting[]): string {
  return settings.reduce(setValue, text)
}

function setValue(text: string, setting: ConfigSetting): string {
  const last = setting.key.at(-1) ?? ''
  const attribute = last.startsWith('@') ? last.slice(1) : null
  const names = attribute === null ? setting.key : setting.key.slice(0, -1)
  const root = readXml(text)
  if (root === null) return isConditional(setting) ? text : text + newTree(names, setting, attribute, '')
  const [first = '', ...rest] = names
  if (!isNamed(root, first)) throw new ConfigFault(`the first element is ${root.name} and not ${first}`)
  const splices: Splice[] = []
  visit(root, rest)
  return applySplices(text, splices)

  function visit(element: XmlElement, left: readonly string[]): void {
    const [name, ...further] = left
    if (name === undefined) {
      splices.push(
        ...(attribute === null ? setText(text, element, setting) : setAttribute(element, attribute, setting)),
      )
      return
    }
    const found = element.children.filter((child) => isNamed(child, name))
    for (const child of found) visit(child, further)
    if (found.length === 0 && name !== ANY && !isConditional(setting))
      splices.push(addChild(text, element, left, setting, attribute))
  }
}

function isNamed({ name, attributes }: XmlElement, wanted: string): boolean {
  const [, plain, attribute, value] = PREDICATE.exec(wanted) ?? []
  if (attribute === undefined) return wanted === ANY || wanted === name
  return plain === name && attributes.get(attribute)?.value === value
}

function setText(text: string, element: XmlElement, setting: ConfigSetting): Splice[] {
  if (element.children.length > 0) throw new ConfigFault(`${element.name} has elements in it, and no text`)
  const current = element.isEmpty ? '' : decoded(text.slice(element.openEnd, element.closeStart))
  if (!isWanted(setting, current)) return []
  const value = encoded(String(setting.value))
  if (!element.isEmpty) return [{ start: element.openEnd, end: element.closeStart, text: value }]
  const slash = text.lastIndexOf('/', element.openEnd)
  return [{ start: slash, end: element.openEnd, text: `>${value}</${element.name}>` }]
}

function setAttribute(element: XmlElement, name: string, setting: ConfigSetting): Splice[] {
  const attribute = element.attributes.get(name)
  if (!isWanted(setting, attribute?.value)) return []
  const value = `"${encoded(String(setting.value))}"`
  if (attribute) return [{ start: attribute.start, end: attribute.end, text: value }]
  const at = element.start + 1 + element.name.length
  return [{ start: at, end: at, text: ` ${name}=${value}` }]
}

/** Before the tag that closes its parent, indented as its siblings are. */
function addChild(
  text: string,
  parent: XmlElement,
  names: readonly string[],
  setting: ConfigSetting,
  attribute: string | null,
): Splice {
  const own = indentationAt(text, parent.start)
  const sibling = parent.children.at(-1)
  const inner = sibling ? indentationAt(text, sibling.start) : `${own}  `
  const tree = newTree(names, setting, attribute, inner)
  if (parent.isEmpty) {
    const slash = text.lastIndexOf('/', parent.openEnd)
    return { start: slash, end: parent.openEnd, text: `>\n${inner}${tree}${own}</${parent.name}>` }
  }
  const contentEnd = text.slice(0, parent.closeStart).trimEnd().length
  return { start: Math.max(contentEnd, parent.openEnd), end: parent.closeStart, text: `\n${inner}${tree}${own}` }
}

/** Elements within each other, with the value in the innermost; ends with a line break. */
function newTree(
  names: readonly string[],
  setting: ConfigSetting,
  attribute: string | null,
  indentation: string,
): string {
  const [name = '', ...further] = names
  if (name === ANY) throw new ConfigFault(`${setting.key.join('.')} is not there`)
  const [, plain = name, predicate, wanted = ''] = PREDICATE.exec(name) ?? []
  const given = predicate === undefined ? '' : ` ${predicate}="${encoded(wanted)}"`
  const value = encoded(String(setting.value))
  if (further.length > 0) {
    const inner = `${indentation}  `
    return `<${plain}${given}>\n${inner}${newTree(further, setting, attribute, inner)}${indentation}</${plain}>\n`
  }
  return attribute === null
    ? `<${plain}${given}>${value}</${plain}>\n`
    : `<${plain}${given} ${attribute}="${value}"/>\n`
}

const indentationAt = (text: string, at: number) =>
  /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', at) + 1, at))?.[0] ?? ''

const ENTITIES: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }
const decoded = (text: string) => text.replace(/&(lt|gt|amp|quot|apos);/g, (_, name: string) => ENTITIES[name] ?? '')
const encoded = (text: string) =>
  text.replace(/[<>&"]/g, (char) => `&${Object.keys(ENTITIES).find((name) => ENTITIES[name] === char)};`)

/** null: there is no element yet. Entities that a file declares itself are not looked at. */
function readXml(text: string): XmlElement | null {
  const open: XmlElement[] = []
  let root: XmlElement | null = null
  for (let at = text.indexOf('<'); at !== -1; at = text.indexOf('<', at)) {
    const skipped = skipSpecial(text, at)
    if (skipped !== null) at = skipped
    else if (text[at + 1] === '/') at = closeElement(text, at, open)
    else {
      const element = openElement(text, at)
      const parent = open.at(-1)
      if (parent) parent.children.push(element)
      else if (root) throw new ConfigFault('it is not XML: there are two first elements')
      root ??= element
      if (!element.isEmpty) open.push(element)
      if (open.length > DEPTH_MAX) throw new ConfigFault('it is nested too deeply')
      at = element.openEnd
    }
  }
  if (open.length > 0) throw new ConfigFault(`it is not XML: ${open.at(-1)?.name} is not closed`)
  return root
}

const SPECIAL = [
  ['<!--', '-->'],
  ['<![CDATA[', ']]>'],
  ['<?', '?>'],
  ['<!', '>'],
] as const

function skipSpecial(text: string, at: number): number | null {
  const special = SPECIAL.find(([start]) => text.startsWith(start, at))
  if (!special) return null
  const end = text.indexOf(special[1], at + special[0].length)
  if (end === -1) throw new ConfigFault(`it is not XML: ${special[0]} is not closed`)
  return end + special[1].length
}

function closeElement(text: string, at: number, open: XmlElement[]): number {
  const end = text.indexOf('>', at)
  const element = open.pop()
  if (end === -1 || !element || text.slice(at + 2, end).trim() !== element.name)
    throw new ConfigFault(`it is not XML: ${element?.name ?? 'an element'} is not closed where it should be`)
  element.closeStart = at
  return end + 1
}

function openElement(text: string, start: number): XmlElement {
  let at = start + 1
  const match = (form: RegExp): string => {
    form.lastIndex = at
    const found = form.exec(text)?.[0] ?? ''
    at += found.length
    return found
  }
  const name = match(NAME)
  const attributes: XmlElement['attributes'] = new Map()
  for (match(BLANKS); text[at] !== '>' && text[at] !== '/'; match(BLANKS)) {
    const attribute = match(NAME)
    match(BLANKS)
    if (attribute === '' || text[at++] !== '=')
      throw new ConfigFault(`it is not XML: the tag ${name} is not understood`)
    match(BLANKS)
    const quote = text[at] ?? ''
    const end = quote === '"' || quote === "'" ? text.indexOf(quote, at + 1) : -1
    if (end === -1) throw new ConfigFault(`it is not XML: ${attribute} has no value in quotes`)
    attributes.set(attribute, { value: decoded(text.slice(at + 1, end)), start: at, end: end + 1 })
    at = end + 1
  }
  const isEmpty = text[at] === '/'
  const openEnd = text.indexOf('>', at) + 1
  if (name === '' || openEnd === 0) throw new ConfigFault('it is not XML: a tag is not understood')
  return { name, attributes, children: [], start, openEnd, closeStart: openEnd, isEmpty }
}
