// The start command of an egg. There it is a line that a shell evaluates, with values pasted in before; here it is a list of
// arguments where it can be one, and otherwise a line for the shell of a container, with values in its environment.
import type { Template } from '../../contract/games/template-format.ts'
import { nameInTemplate, SERVER_ENVIRONMENT, translate } from './egg-placeholders.ts'
import { type EggReader, isRecord } from './egg-reader.ts'
import type { Path } from './ledger.ts'

type Argument = NonNullable<Template['start']['args']>[number]

const LINE_MAX_CHARS = 16_384
const BASH = /\[\[|<\(|>\(|<<<|&>|\$'|\{[^{}\s]*\.\.[^{}\s]*\}|\bfunction\s|\bdeclare\s|\bsource\s/

export interface StartVariables {
  names: ReadonlySet<string>
  /** Those whose empty value leaves its argument out: a false is written, an empty text is not. */
  canBeEmpty: ReadonlySet<string>
}

/** What a start command becomes, or undefined where the egg has none. */
export function importStartup(egg: EggReader, variables: StartVariables): Template['start'] | undefined {
  const found = findStartup(egg)
  if (!found) return undefined
  const { path, text } = found
  const { ledger } = egg
  const words = splitWords(text.trim(), variables.names)
  if (words === null) {
    if (text.length > LINE_MAX_CHARS) return undefined
    const { line, unknown } = shellLineOf(text.trim(), variables.names)
    const shell = BASH.test(line) ? 'bash' : 'sh'
    ledger.changed(path, `has shell syntax: runs under ${shell} -c in a container only, with values in the environment`)
    noteUnknown(egg, path, unknown)
    return { shellLine: line, shell }
  }
  ledger.changed(path, 'is a list of arguments: no shell reads it')
  if (words.some(({ isSplit }) => isSplit))
    ledger.changed(path, 'a value with spaces stays one argument, where a shell would make several of it')
  if (words.some(({ hasGlob }) => hasGlob)) ledger.changed(path, '? and [ are taken as they are')
  noteUnknown(egg, path, [...new Set(words.flatMap(({ unknown }) => unknown))])
  const isExec = words[0]?.text === 'exec' && words.length > 1
  if (isExec) ledger.changed(path, 'exec is not needed')
  return { args: words.slice(isExec ? 1 : 0).map((word, index) => argumentOf(word, index, variables)) }
}

function noteUnknown({ ledger }: EggReader, path: Path, unknown: readonly string[]): void {
  if (unknown.length > 0) ledger.changed(path, `names that nothing here has are empty: ${unknown.join(', ')}`)
}

/** From PLCN_v3 on there may be several, by name: the first is the one that servers get. */
function findStartup(egg: EggReader): { path: Path; text: string } | undefined {
  const commands = egg.value(['startup_commands'])
  const listed: [Path, unknown][] = isRecord(commands)
    ? Object.entries(commands).map(([name, text]) => [['startup_commands', name], text])
    : []
  const all: [Path, unknown][] = [...listed, [['startup'], egg.value(['startup'])]]
  const [first, ...others] = all.filter(([, text]) => typeof text === 'string' && text.trim() !== '')
  for (const [path] of others) egg.ledger.dropped(path, 'one start command is kept: another one is')
  return first && { path: first[0], text: String(first[1]) }
}

function argumentOf(word: Word, index: number, { canBeEmpty }: StartVariables): Argument {
  const isLeftOut = index > 0 && word.sole !== null && canBeEmpty.has(word.sole)
  return isLeftOut && word.sole !== null ? { if: word.sole, args: [word.text] } : word.text
}

const ENVIRONMENT_NAMES = new Map(Object.entries(SERVER_ENVIRONMENT).map(([name, fact]) => [fact, name]))

/** As the shell of the container finds them: values are never pasted into the line. */
function shellLineOf(text: string, names: ReadonlySet<string>): { line: string; unknown: string[] } {
  // A shell fills nothing into single quotes, so each of them ends before a value and begins again after it.
  const { parts, quoted } = bySingleQuotes(text)
  const unknown: string[] = []
  const line = parts.map((part, index) => {
    const isQuoted = quoted.has(index)
    const translated = translate(part, names, (name) => {
      const value = `\${${ENVIRONMENT_NAMES.get(name) ?? name}}`
      return isQuoted ? `'"${value}"'` : value
    })
    unknown.push(...translated.unknown)
    return translated.text
  })
  return { line: line.join(''), unknown: [...new Set(unknown)] }
}

/** The text in parts, and which of them are within single quotes. */
function bySingleQuotes(text: string): { parts: string[]; quoted: Set<number> } {
  const parts = ['']
  const quoted = new Set<number>()
  let isDouble = false
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? ''
    const isQuoted = quoted.has(parts.length - 1)
    parts[parts.length - 1] += char
    if (char === '\\' && !isQuoted) parts[parts.length - 1] += text[++at] ?? ''
    else if (char === '"' && !isQuoted) isDouble = !isDouble
    else if (char === "'" && !isDouble) {
      if (!isQuoted) quoted.add(parts.length)
      parts.push('')
    }
  }
  return { parts, quoted }
}

interface Word {
  text: string
  /** The only thing in it, unquoted. */
  sole: string | null
  /** A value in it is not in quotes, so a shell would split it at spaces. */
  isSplit: boolean
  hasGlob: boolean
  unknown: string[]
}

const emptyWord = (): Word => ({ text: '', sole: null, isSplit: false, hasGlob: false, unknown: [] })
/** What only a shell understands, outside of quotes. */
const SHELL_SIGNS = '|&;<>()`*$#~!{}\n\r'

/** null: only a shell understands it. */
function splitWords(line: string, names: ReadonlySet<string>): Word[] | null {
  const words: Word[] = []
  let word: Word | null = null
  let quote: '"' | "'" | null = null
  for (let at = 0; at < line.length; ) {
    const char = line[at] ?? ''
    const placeholder = quote === "'" ? null : placeholderAt(line, at, names)
    if (placeholder) {
      const isAlone: boolean = word === null && /^(?:\s|$)/.test(line.slice(at + placeholder.length))
      word ??= emptyWord()
      word.text += placeholder.name === null ? '' : `{{${placeholder.name}}}`
      if (placeholder.name === null) word.unknown.push(placeholder.original)
      if (isAlone) word.sole = placeholder.name
      if (quote === null) word.isSplit = true
      at += placeholder.length
      continue
    }
    at++
    if (quote === null && /[ \t]/.test(char)) {
      if (word) words.push(word)
      word = null
      continue
    }
    if (char === quote) {
      quote = null
      continue
    }
    word ??= emptyWord()
    if (quote === null && (char === '"' || char === "'")) quote = char
    else if (quote === "'") word.text += char
    else if (char === '\\') word.text += quote === '"' && !'"\\$`'.includes(line[at] ?? '') ? char : (line[at++] ?? '')
    else if (char === '$' || char === '`') return null
    else if (quote === null && SHELL_SIGNS.includes(char)) return null
    else {
      if (quote === null && (char === '?' || char === '[')) word.hasGlob = true
      word.text += char
    }
  }
  if (word) words.push(word)
  const isAssignment = /^[A-Za-z_]\w*=/.test(words[0]?.text ?? '')
  return quote !== null || words.length === 0 || isAssignment ? null : words
}

/** `{{NAME}}`, and `${NAME}` or `$NAME` of a variable that there is. */
function placeholderAt(line: string, at: number, names: ReadonlySet<string>) {
  const sign = line[at]
  if (sign !== '{' && sign !== '$') return null
  const rest = line.slice(at, at + 100)
  const braces = /^\{\{\s*([\w.-]+)\s*\}\}/.exec(rest)
  if (braces) {
    const original = braces[1] ?? ''
    return { name: nameInTemplate(original, names), original, length: braces[0].length }
  }
  const dollar = /^\$(?:\{(\w+)\}|([A-Za-z_]\w*))/.exec(rest)
  const original = dollar?.[1] ?? dollar?.[2] ?? ''
  const name = dollar ? nameInTemplate(original, names) : null
  return dollar && name !== null ? { name, original, length: dollar[0].length } : null
}
