// Formats of lines: Java properties, INI and plain text. Lines that no setting is about stay as they are.
import { ConfigFault, type ConfigSetting, fits, isConditional, isWanted, lineBreakOf } from './config-edit.ts'

/** Whole lines are replaced, by how they begin. Nothing is added: where would it go? */
export function fillText(text: string, settings: readonly ConfigSetting[]): string {
  const lines = text.split('\n')
  const edited = lines.map((line) => {
    const ending = line.endsWith('\r') ? '\r' : ''
    const plain = ending ? line.slice(0, -1) : line
    const setting = settings.findLast(({ key: [start = ''] }) => plain.startsWith(start))
    return setting && isWanted(setting, plain) ? `${setting.value}${ending}` : line
  })
  return edited.join('\n')
}

interface KeyedLine {
  section: string | null
  key: string
  value: string
  /** Indices of its lines: one, but for properties that go on in the next line. */
  from: number
  to: number
  /** Everything before the value. */
  head: string
}

interface LineFormat {
  read(lines: readonly string[]): KeyedLine[]
  write(value: string): string
  separator: string
}

export const fillProperties = (text: string, settings: readonly ConfigSetting[]) =>
  fillLines(text, settings, PROPERTIES)
export const fillIni = (text: string, settings: readonly ConfigSetting[]) => fillLines(text, settings, INI)

function fillLines(text: string, settings: readonly ConfigSetting[], format: LineFormat): string {
  const eol = lineBreakOf(text)
  let lines = text === '' ? [] : text.split(/\r?\n/)
  for (const setting of settings) lines = setLine(lines, setting, format)
  const edited = lines.join(eol)
  return edited.endsWith(eol) || edited === '' ? edited : edited + eol
}

function setLine(lines: string[], setting: ConfigSetting, format: LineFormat): string[] {
  const [first = '', second] = setting.key
  if (setting.key.length > 2) throw new ConfigFault(`${setting.key.join('.')} has more names than a section and a key`)
  const [section, key] = second === undefined ? [null, first] : [first, second]
  const read = format.read(lines)
  const isMeant = (line: KeyedLine) => (section === null ? line.section === null : fits(section, line.section ?? ''))
  const found = read.filter((line) => isMeant(line) && line.key === key)
  if (found.length === 0) return isConditional(setting) ? lines : addLine(lines, section, key, setting, format)
  const edited = [...lines]
  for (const { from, to, head, value } of found.toReversed())
    if (isWanted(setting, value)) edited.splice(from, to - from + 1, head + format.write(String(setting.value)))
  return edited
}

const sectionOf = (line: string) => /^\s*\[(.*)\]\s*(?:[;#].*)?$/.exec(line)?.[1]

/** At the end of its section, before the blank lines there; a section that is missing comes last. */
function addLine(lines: string[], section: string | null, key: string, setting: ConfigSetting, format: LineFormat) {
  const added = `${key}${format.separator}${format.write(String(setting.value))}`
  const isIni = format === INI
  const headers = isIni ? lines.flatMap((line, index) => (sectionOf(line) === undefined ? [] : [index])) : []
  const header = section === null ? -1 : headers.find((index) => sectionOf(lines[index] ?? '') === section)
  if (section !== null && header === undefined) {
    if (section === '*') return lines
    const blank = lines.length > 0 && lines.at(-1)?.trim() !== '' ? [''] : []
    return [...lines, ...blank, `[${section}]`, added]
  }
  let end = headers.find((index) => index > (header ?? -1)) ?? lines.length
  while (end > (header ?? -1) + 1 && lines[end - 1]?.trim() === '') end--
  return lines.toSpliced(end, 0, added)
}

const INI: LineFormat = {
  separator: '=',
  write: (value) => value,
  read(lines) {
    let section: string | null = null
    return lines.flatMap((line, index) => {
      const header = sectionOf(line)
      if (header !== undefined) section = header
      const keyed = header === undefined ? keyedLine(line) : null
      return keyed === null ? [] : [{ section, from: index, to: index, ...keyed }]
    })
  },
}

/** By hand: an expression for it would take quadratic time on a line of blanks. */
function keyedLine(line: string): Pick<KeyedLine, 'key' | 'value' | 'head'> | null {
  const equals = line.indexOf('=')
  const key = line.slice(0, Math.max(0, equals)).trim()
  if (key === '' || /^[;#[]/.test(key)) return null
  const rest = line.slice(equals + 1)
  const value = rest.trim()
  return { key, value, head: line.slice(0, equals + 1 + (rest.length - rest.trimStart().length)) }
}

const PROPERTIES: LineFormat = {
  separator: '=',
  write: escapeValue,
  read(lines) {
    const found: KeyedLine[] = []
    for (let from = 0; from < lines.length; from++) {
      const line = lines[from] ?? ''
      if (/^\s*(?:[#!].*)?$/.test(line)) continue
      let to = from
      let value = line
      while (isContinued(value) && to + 1 < lines.length) {
        value = value.slice(0, -1) + (lines[to + 1] ?? '').trimStart()
        to++
      }
      const [, head = '', key = '', rest = ''] =
        /^(\s*((?:[^\\=:\s]|\\.)+)(?:\s*[=:]\s*|\s+|$))(.*)$/s.exec(value) ?? []
      if (head !== '') found.push({ section: null, key: unescaped(key), value: unescaped(rest), from, to, head })
      from = to
    }
    return found
  },
}

const isContinued = (line: string) => (/\\*$/.exec(line)?.[0].length ?? 0) % 2 === 1

const ESCAPES: Record<string, string> = { t: '\t', n: '\n', r: '\r', f: '\f' }
const unescaped = (text: string) =>
  text.replace(/\\(?:u([0-9a-fA-F]{4})|(.))/gs, (_, code?: string, char = '') =>
    code ? String.fromCharCode(Number.parseInt(code, 16)) : (ESCAPES[char] ?? char),
  )

/** What is not ASCII is written as Java does, so that it means the same whatever encoding the game reads. */
function escapeValue(value: string): string {
  const escaped = value.replaceAll('\\', '\\\\').replace(/^ /, '\\ ')
  return escaped.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
