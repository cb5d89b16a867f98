// The rules that Laravel would check a variable of an egg with, as a typed variable of a template.
import type { TemplateVariable } from '../../contract/games/template-format.ts'
import { compilePattern } from '../linear-pattern.ts'

export interface RuleNote {
  rule: string
  /** Its index in the list. */
  index: number
  message: string
}

export type Ruled = Pick<
  TemplateVariable,
  | 'type'
  | 'isRequired'
  | 'minLength'
  | 'maxLength'
  | 'min'
  | 'max'
  | 'form'
  | 'pattern'
  | 'noneOf'
  | 'choices'
  | 'whenTrue'
  | 'whenFalse'
>

export interface RulesRead {
  variable: Ruled
  /** Rules that were not carried over, each with why. */
  dropped: RuleNote[]
}

const CHOICES_MAX = 200
const CHOICE_MAX_CHARS = 191
const TEXT_MAX = 4096
const PATTERN_MAX_CHARS = 500
const FORMS: Record<string, Ruled['form']> = {
  alpha: 'letters',
  alpha_num: 'alphanumeric',
  alpha_dash: 'dashed',
  url: 'url',
  active_url: 'url',
  ip: 'ip',
  ipv4: 'ip',
  email: 'email',
}
/** Rules that say nothing more than what is so anyway. */
const SILENT = new Set(['string', 'nullable', 'present', 'sometimes', 'bail', ''])

/** As a list, or as one text with bars, which a regular expression may have too. */
export function splitRules(rules: unknown): string[] {
  if (Array.isArray(rules)) return rules.map(String)
  if (typeof rules !== 'string') return []
  const split: string[] = []
  let rest = rules
  while (rest !== '') {
    const regex = /^(?:not_)?regex:(.)/.exec(rest)
    const closing = regex ? rest.lastIndexOf(regex[1] ?? '/') : -1
    const from = regex && closing > regex[0].length ? closing : 0
    const bar = rest.indexOf('|', from)
    split.push(bar === -1 ? rest : rest.slice(0, bar))
    rest = bar === -1 ? '' : rest.slice(bar + 1)
  }
  return split
}

export function readRules(rules: readonly string[]): RulesRead {
  const parsed = rules.map((rule, index) => {
    const colon = rule.indexOf(':')
    const name = (colon === -1 ? rule : rule.slice(0, colon)).trim().toLowerCase()
    return { rule, index, name, value: colon === -1 ? '' : rule.slice(colon + 1) }
  })
  const has = (...names: string[]) => parsed.some(({ name }) => names.includes(name))
  const variable: Ruled = { type: typeOf(has) }
  const dropped: RuleNote[] = []
  if (has('required', 'filled')) variable.isRequired = true
  for (const { rule, index, name, value } of parsed) {
    if (SILENT.has(name) || name === 'required' || name === 'filled') continue
    const refusal = apply(variable, name, value)
    if (refusal !== null) dropped.push({ rule, index, message: refusal })
  }
  if (variable.type === 'boolean') Object.assign(variable, { whenTrue: '1', whenFalse: '0' })
  if (variable.type === 'choice' && variable.choices === undefined) variable.type = 'text'
  return { variable, dropped }
}

function typeOf(has: (...names: string[]) => boolean): Ruled['type'] {
  if (has('in')) return 'choice'
  if (has('boolean', 'bool')) return 'boolean'
  if (has('integer', 'int')) return 'integer'
  return has('numeric', 'decimal') ? 'number' : 'text'
}

/** Adds a rule to the variable; why not, or null. */
function apply(variable: Ruled, name: string, value: string): string | null {
  if (['boolean', 'bool', 'integer', 'int', 'numeric'].includes(name))
    return variable.type === 'choice' || isOfType(variable, name) ? null : `does not go with ${variable.type}`
  if (name === 'in') return applyChoices(variable, value)
  const isNumber = variable.type === 'integer' || variable.type === 'number'
  if (isNumber) return applyToNumber(variable, name, value)
  if (variable.type === 'choice') return 'is not needed: the value is one of a list'
  if (variable.type === 'boolean') return 'does not go with true and false'
  return applyToText(variable, name, value)
}

const isOfType = ({ type }: Ruled, name: string) =>
  type === (name.startsWith('bool') ? 'boolean' : 'integer') ||
  (name === 'numeric' && type === 'number') ||
  (name === 'numeric' && type === 'integer')

function applyChoices(variable: Ruled, value: string): string | null {
  const choices = [...new Set(csv(value))].filter((choice) => choice !== '')
  if (choices.length === 0) return 'names no values'
  if (choices.length > CHOICES_MAX || choices.some((choice) => choice.length > CHOICE_MAX_CHARS))
    return 'names more values, or longer ones, than a template may have'
  variable.choices = choices
  return null
}

/** Values that are separated by commas, some of them in double quotes. */
const csv = (text: string) =>
  [...`,${text}`.matchAll(/,(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
    ([, quoted, plain = '']) => quoted?.replaceAll('""', '"') ?? plain,
  )

function applyToNumber(variable: Ruled, name: string, value: string): string | null {
  const numbers = value.split(',').map((text) => (text.trim() === '' ? Number.NaN : Number(text)))
  const [first = Number.NaN, second = Number.NaN] = numbers
  const step = variable.type === 'integer' ? 1 : null
  if (!Number.isFinite(first)) return `is not known for a ${variable.type}`
  if (name === 'digits' || name === 'digits_between') {
    const least = first === 1 ? 0 : 10 ** (first - 1)
    const most = 10 ** (name === 'digits' ? first : second) - 1
    if (!Number.isSafeInteger(least) || !Number.isSafeInteger(most)) return 'has more digits than a number may have'
    Object.assign(variable, { type: 'integer', min: least, max: most })
  } else if (name === 'min' || name === 'gte') variable.min = first
  else if (name === 'max' || name === 'lte') variable.max = first
  else if (name === 'gt' && step !== null) variable.min = Math.floor(first) + step
  else if (name === 'lt' && step !== null) variable.max = Math.ceil(first) - step
  else if (name === 'size') Object.assign(variable, { min: first, max: first })
  else if (name === 'between' && Number.isFinite(second)) Object.assign(variable, { min: first, max: second })
  else return `is not known for a ${variable.type}`
  return null
}

function applyToText(variable: Ruled, name: string, value: string): string | null {
  const form = FORMS[name]
  if (form !== undefined) return setForm(variable, form)
  if (name === 'regex') return applyRegex(variable, value)
  if (name === 'not_in') {
    variable.noneOf = csv(value).slice(0, CHOICES_MAX)
    return null
  }
  if (name === 'starts_with' || name === 'ends_with') {
    const ends = csv(value).map(escaped).join('|')
    return setPattern(variable, name === 'starts_with' ? `^(${ends})` : `(${ends})$`)
  }
  return applyLength(variable, name, value)
}

function applyLength(variable: Ruled, name: string, value: string): string | null {
  const [first = -1, second = first] = value.split(',').map((text) => (/^\d+$/.test(text.trim()) ? Number(text) : -1))
  const isDigits = name === 'digits' || name === 'digits_between'
  const most = Math.min(second, TEXT_MAX)
  if (first < 0 || second < 0) return 'is not known'
  if (isDigits && setForm(variable, 'digits') !== null) return 'is a second form, and one is taken'
  if (name === 'min' || name === 'gte') variable.minLength = Math.min(first, TEXT_MAX)
  else if (name === 'max' || name === 'lte') variable.maxLength = Math.min(first, TEXT_MAX)
  else if (['between', 'digits_between', 'size', 'digits'].includes(name))
    Object.assign(variable, { minLength: Math.min(first, TEXT_MAX), maxLength: most })
  else return 'is not known'
  return null
}

function setForm(variable: Ruled, form: NonNullable<Ruled['form']>): string | null {
  if (variable.form !== undefined && variable.form !== form) return 'is a second form, and one is taken'
  variable.form = form
  return null
}

/** As PHP writes them: between two delimiters, with flags behind. */
function applyRegex(variable: Ruled, value: string): string | null {
  const [, , source, flags] = /^([^\w\s\\])(.*)\1([a-zA-Z]*)$/s.exec(value) ?? []
  if (source === undefined || flags === undefined) return 'is no regular expression between two delimiters'
  if (/[^uD]/.test(flags)) return `has a flag that is not taken: ${flags}`
  return setPattern(variable, source.replaceAll('\\/', '/'))
}

function setPattern(variable: Ruled, pattern: string): string | null {
  if (variable.pattern !== undefined) return 'is a second pattern, and one is taken'
  if (pattern.length > PATTERN_MAX_CHARS) return 'is longer than a pattern may be'
  if (compilePattern(pattern) === null) return 'cannot be matched in linear time, so values are not checked against it'
  variable.pattern = pattern
  return null
}

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
