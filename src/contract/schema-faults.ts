// What a validator found, in the words that callers read.
import type { ErrorObject } from 'ajv'
import type { FieldFault } from './errors.ts'
import { OTHERWISE } from './schema.ts'

export function faultOf(error: ErrorObject): FieldFault {
  const { params, instancePath: at, keyword } = error
  if (keyword === 'required') return { path: `${at}/${params.missingProperty}`, message: 'is required' }
  if (keyword === 'additionalProperties') {
    return { path: `${at}/${params.additionalProperty}`, message: 'is not a known field' }
  }
  if (keyword === 'enum') return { path: at, message: `must be one of ${params.allowedValues.map(String).join(', ')}` }
  if (keyword === 'type') return { path: at, message: `must be ${[params.type].flat().join(' or ')}` }
  if (keyword === 'anyOf' && error.parentSchema?.[OTHERWISE])
    return { path: at, message: error.parentSchema[OTHERWISE] }
  if (keyword === 'minProperties') return { path: at, message: 'must have at least one field' }
  if (keyword === 'pattern') return { path: at, message: 'has characters or a form that is not allowed' }
  return { path: at, message: error.message ?? 'is not valid' }
}

export function distinctFaults(faults: readonly FieldFault[]): FieldFault[] {
  const seen = new Set<string>()
  return faults.filter(({ path, message }) => {
    const key = `${path} ${message}`
    return seen.has(key) ? false : seen.add(key)
  })
}

/** Half a character fits no pattern: no database keeps it, and no pattern that every engine understands can name it. */
function textPattern(pattern: string, flags: string) {
  const form = new RegExp(pattern, flags)
  return { test: (text: string) => text.isWellFormed() && form.test(text), toString: () => String(form) }
}
export const wellFormedRegExp = Object.assign(textPattern, { code: '' })
