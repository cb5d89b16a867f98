// The files that an egg fills in before each start.
import { TEMPLATE_CONFIG_FILES_MAX, TEMPLATE_SETTINGS_MAX } from '../../contract/fixed-limits.ts'
import type { ConfigFormat, Template, TemplateSetting } from '../../contract/games/template-format.ts'
import { compilePattern } from '../linear-pattern.ts'
import { translate } from './egg-placeholders.ts'
import { type EggReader, isRecord } from './egg-reader.ts'
import type { Path } from './ledger.ts'

type ConfigFile = NonNullable<Template['configFiles']>[number]

const PARSERS: Readonly<Record<string, ConfigFormat>> = {
  file: 'text',
  properties: 'properties',
  json: 'json',
  yaml: 'yaml',
  yml: 'yaml',
  ini: 'ini',
  xml: 'xml',
  toml: 'toml',
}
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is refused
const CONTROLS = /[\x00-\x1f\x7f-\x9f\u2028\u2029]/
const VALUE_MAX_CHARS = 4096
const KEY_MAX_CHARS = 500
const KEY_MAX_NAMES = 20
const REGEX = 'regex:'

export function importConfigFiles(egg: EggReader, variables: ReadonlySet<string>): ConfigFile[] {
  const listed = egg.value(['config', 'files'])
  if (!isRecord(listed)) {
    // One that is still a text was found to be no JSON.
    if (listed && typeof listed !== 'string')
      egg.ledger.dropped(['config', 'files'], 'must be an object of files by name')
    return []
  }
  const files: ConfigFile[] = []
  for (const [name, entry] of Object.entries(listed)) {
    const path: Path = ['config', 'files', name]
    const file = importFile(egg, path, name, entry, variables)
    if (typeof file === 'string') egg.ledger.dropped(path, file)
    else if (files.length >= TEMPLATE_CONFIG_FILES_MAX)
      egg.ledger.dropped(path, `is one of more than ${TEMPLATE_CONFIG_FILES_MAX} files`)
    else if (file.settings.length > 0) files.push(file)
  }
  return files
}

/** A sentence where it cannot be taken. */
function importFile(
  egg: EggReader,
  path: Path,
  name: string,
  entry: unknown,
  variables: ReadonlySet<string>,
): ConfigFile | string {
  const filePath = pathOf(name)
  if (filePath === null) return 'is no path among the files of the server'
  if (!isRecord(entry)) return 'must be an object'
  const parser = String(entry.parser)
  const format = Object.hasOwn(PARSERS, parser) ? PARSERS[parser] : undefined
  if (format === undefined) return `has a parser that is not known: ${parser.slice(0, 50)}`
  if (!isRecord(entry.find)) {
    egg.ledger.carried([...path, 'parser'], 'has nothing to fill in')
    return { path: filePath, format, settings: [] }
  }
  egg.ledger.carried([...path, 'parser'])
  const settings = Object.entries(entry.find).flatMap(([key, value]) =>
    importSetting(egg, { path: [...path, 'find', key], format, key, value, variables }),
  )
  for (const _ of settings.splice(TEMPLATE_SETTINGS_MAX))
    egg.ledger.dropped(
      [...path, 'find'],
      `has more than ${TEMPLATE_SETTINGS_MAX} settings: one of those beyond is left out`,
    )
  return { path: filePath, format, settings }
}

function pathOf(name: string): string | null {
  const names = name.split('/').filter((part) => part !== '' && part !== '.')
  const isPlain = names.length > 0 && !names.includes('..') && !CONTROLS.test(name) && !name.includes('{{')
  return isPlain && name.length < 1000 ? `/${names.join('/')}` : null
}

interface Found {
  path: Path
  format: ConfigFormat
  key: string
  value: unknown
  variables: ReadonlySet<string>
}

/** A value, or values by the one that is replaced. */
function importSetting(egg: EggReader, found: Found): TemplateSetting[] {
  const { path, value } = found
  if (!isRecord(value)) return toSetting(egg, found, value, path)
  return Object.entries(value).flatMap(([condition, replacement]) => {
    const inner = [...path, condition]
    const when = conditionOf(condition, replacement)
    if (typeof when === 'string') {
      egg.ledger.dropped(inner, when)
      return []
    }
    return toSetting(egg, found, replacement, inner).map((setting) => ({ ...setting, ...when }))
  })
}

function conditionOf(condition: string, replacement: unknown): string | Partial<TemplateSetting> {
  if (CONTROLS.test(condition) || condition.length > KEY_MAX_CHARS) return 'has a condition that is not taken'
  if (!condition.startsWith(REGEX)) return { ifEquals: condition }
  const pattern = condition.slice(REGEX.length)
  if (compilePattern(pattern) === null) return 'has a condition that cannot be matched in linear time'
  if (/\$\d|\$\{/.test(String(replacement))) return 'puts a part of the old value into the new one, which is not taken'
  if (!pattern.startsWith('^') || !pattern.endsWith('$')) return 'replaces a part of the old value, which is not taken'
  return { ifMatches: pattern }
}

function toSetting(egg: EggReader, found: Found, value: unknown, path: Path): TemplateSetting[] {
  const { ledger } = egg
  const refuse = (message: string) => {
    ledger.dropped(path, message)
    return []
  }
  const key = keyOf(found.format, found.key)
  if (key === null) return refuse('has a key that is not taken')
  if (typeof value === 'boolean' || typeof value === 'number') {
    ledger.carried(path)
    return [{ key, value }]
  }
  if (typeof value !== 'string') return refuse('must be a text, a number, true or false')
  const { text, unknown } = translate(value, found.variables)
  if (unknown.length > 0) return refuse(`names what nothing here has: ${unknown.join(', ').slice(0, 200)}`)
  if (CONTROLS.test(text)) return refuse('has more than one line')
  if (text.length > VALUE_MAX_CHARS) return refuse(`is longer than ${VALUE_MAX_CHARS} characters`)
  if (text === value) ledger.carried(path)
  else ledger.changed(path, `is ${text}`)
  if (/\{\{|\}\}/.test(text.replace(/\{\{[\w.-]+\}\}/g, '')))
    ledger.changed(path, 'has braces that mean nothing, as text')
  return [settingOf(found.format, key, text)]
}

/** `[name='value']` in XML is an attribute; a whole number in JSON and YAML is written as one. */
function settingOf(format: ConfigFormat, key: string[], text: string): TemplateSetting {
  const [, attribute, value] = (format === 'xml' && /^\[(\w+)='(.*)'\]$/.exec(text)) || []
  if (attribute !== undefined && value !== undefined) return { key: [...key, `@${attribute}`], value }
  return { key, value: text, ...(format === 'json' || format === 'yaml' ? { isNumeric: true } : {}) }
}

function keyOf(format: ConfigFormat, key: string): string[] | null {
  const names = key.includes('{{') ? [] : namesOf(format, key)
  const isTaken = names.length > 0 && names.length <= KEY_MAX_NAMES
  return isTaken && names.every((name) => name !== '' && name.length <= KEY_MAX_CHARS && !CONTROLS.test(name))
    ? names
    : null
}

function namesOf(format: ConfigFormat, key: string): string[] {
  if (format === 'text' || format === 'properties') return [key]
  if (format === 'ini') return iniNames(key)
  if (format === 'xml') return key.split('.')
  const names = key.split('.').flatMap((name) => name.replace(/\[(\d+|\*)\]/g, '.$1').split('.'))
  // A dot within a name is written as ~1.
  return names.filter((name) => name !== '').map((name) => name.replaceAll('~1', '.').replaceAll('~0', '~'))
}

/** `section.key`, `[a section.with dots].key`, or a key of no section. */
function iniNames(key: string): string[] {
  const bracketed = /^\[([^\]]*)\]\.(.*)$/s.exec(key)
  if (bracketed) return [bracketed[1] ?? '', bracketed[2] ?? '']
  const dot = key.indexOf('.')
  return dot === -1 ? [key] : [key.slice(0, dot), key.slice(dot + 1)]
}
