// The values of a template's variables: which are right, and how each is written as text.
import { isIP } from 'node:net'
import type { FieldFault } from '../contract/errors.ts'
import type { TEXT_FORMS, TemplateVariable } from '../contract/games/template-format.ts'
import { compilePattern } from './linear-pattern.ts'

export type VariableValue = string | number | boolean
export type VariableValues = Readonly<Record<string, VariableValue>>

/** Of a text that has no limit of its own. */
const TEXT_MAX_CHARS = 1024
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is refused
const CONTROLS = /[\x00-\x1f\x7f-\x9f\u2028\u2029]/
const NUMBER = /^-?(?:0|[1-9]\d{0,15})(?:\.\d{1,15})?$/

const FORMS: Record<(typeof TEXT_FORMS)[number], (text: string) => boolean> = {
  letters: (text) => /^\p{L}*$/u.test(text),
  digits: (text) => /^\d*$/.test(text),
  alphanumeric: (text) => /^[\p{L}\p{N}]*$/u.test(text),
  dashed: (text) => /^[\p{L}\p{N}_-]*$/u.test(text),
  url: (text) => /^https?:\/\//.test(text) && URL.canParse(text),
  ip: (text) => isIP(text) !== 0,
  email: (text) => /^[^\s@]+@[^\s@]+$/.test(text),
}

export interface CheckedVariables {
  /** As written into arguments and files. A variable without a value is an empty text. */
  texts: Record<string, string>
  /** The same with their types, for formats that have types. */
  values: Record<string, VariableValue>
}

/** Values that are given count before defaults. Every fault is named, with the path of its field. */
export function checkVariables(
  variables: readonly TemplateVariable[],
  given: VariableValues,
): { faults: FieldFault[] } & CheckedVariables {
  const faults: FieldFault[] = []
  const known = new Set(variables.map(({ name }) => name))
  for (const name of Object.keys(given))
    if (!known.has(name)) faults.push({ path: `/variables/${name}`, message: 'is no variable of the template' })
  const texts: Record<string, string> = {}
  const values: Record<string, VariableValue> = {}
  for (const variable of variables) {
    const { name } = variable
    const value = readValue(variable, Object.hasOwn(given, name) ? given[name] : variable.default)
    const fault = faultOf(variable, value)
    if (fault !== null) faults.push({ path: `/variables/${name}`, message: fault })
    values[name] = value
    texts[name] = textOf(variable, value)
  }
  return { faults, texts, values }
}

/** Forms and command lines send everything as text. */
function readValue({ type, whenTrue = 'true', whenFalse = 'false' }: TemplateVariable, value?: VariableValue) {
  if (value === undefined) return ''
  if (type === 'boolean' && (value === 0 || value === 1)) return value === 1
  if (typeof value !== 'string') return value
  if (type === 'boolean') {
    if (value === whenTrue || value === 'true' || value === '1') return true
    if (value === whenFalse || value === 'false' || value === '0') return false
  }
  return (type === 'integer' || type === 'number') && NUMBER.test(value) ? Number(value) : value
}

function textOf({ whenTrue = 'true', whenFalse = 'false' }: TemplateVariable, value: VariableValue): string {
  return value === true ? whenTrue : value === false ? whenFalse : String(value)
}

/** What is wrong with a value, or null. */
function faultOf(variable: TemplateVariable, value: VariableValue): string | null {
  if (value === '') return variable.isRequired ? 'is required' : null
  if (variable.type === 'boolean') return typeof value === 'boolean' ? null : 'must be true or false'
  if (variable.type === 'integer' || variable.type === 'number') return numberFault(variable, value)
  const text = String(value)
  if (CONTROLS.test(text) || !text.isWellFormed()) return 'must be one line without control characters'
  if (variable.type === 'choice')
    return variable.choices?.includes(text) ? null : `must be one of ${variable.choices?.join(', ')}`
  return textFault(variable, text)
}

function numberFault({ type, min, max }: TemplateVariable, value: VariableValue): string | null {
  if (typeof value !== 'number' || !Number.isFinite(value)) return 'must be a number'
  if (type === 'integer' && !Number.isSafeInteger(value)) return 'must be a whole number'
  if (min !== undefined && value < min) return `must be at least ${min}`
  return max !== undefined && value > max ? `must be at most ${max}` : null
}

function textFault(variable: TemplateVariable, text: string): string | null {
  const { minLength = 0, maxLength = TEXT_MAX_CHARS, form, pattern, noneOf } = variable
  const { length } = [...text]
  if (length < minLength) return `must have at least ${minLength} characters`
  if (length > maxLength) return `must have at most ${maxLength} characters`
  if (form !== undefined && !FORMS[form](text)) return `must be ${FORM_NAMES[form]}`
  if (noneOf?.includes(text)) return `must be none of ${noneOf.join(', ')}`
  if (pattern !== undefined && !compilePattern(pattern)?.test(text)) return `must match ${pattern}`
  return null
}

const FORM_NAMES: Record<(typeof TEXT_FORMS)[number], string> = {
  letters: 'letters only',
  digits: 'digits only',
  alphanumeric: 'letters and digits only',
  dashed: 'letters, digits, dashes and underscores only',
  url: 'an http or https address',
  ip: 'an IP address',
  email: 'an email address',
}
