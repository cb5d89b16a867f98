// The rules of a template's variable, in words.
import type { MessageDescriptor } from '@lingui/core'
import { msg } from '@lingui/core/macro'
import type { TemplateVariable } from '../../../../../src/sdk/index.ts'

const FORMS: Record<NonNullable<TemplateVariable['form']>, MessageDescriptor> = {
  letters: msg`letters only`,
  digits: msg`digits only`,
  alphanumeric: msg`letters and digits only`,
  dashed: msg`letters, digits, dashes and underscores only`,
  url: msg`an http or https address`,
  ip: msg`an IP address`,
  email: msg`an email address`,
}

export function rulesOf(variable: TemplateVariable): MessageDescriptor[] {
  const { type, isRequired, form, pattern, noneOf, default: initial } = variable
  return [
    ...(isRequired ? [msg`needed`] : []),
    ...(type === 'integer' || type === 'number' ? numberRules(variable) : lengthRules(variable)),
    ...(form ? [FORMS[form]] : []),
    ...(pattern === undefined ? [] : [msg`of the form ${pattern}`]),
    ...(noneOf && noneOf.length > 0 ? [msg`none of ${noneOf.join(', ')}`] : []),
    ...(initial === undefined || initial === '' || type === 'secret' || type === 'boolean'
      ? []
      : [msg`${String(initial)} by default`]),
  ]
}

function numberRules({ type, min, max }: TemplateVariable): MessageDescriptor[] {
  const whole = type === 'integer' ? [msg`a whole number`] : []
  if (min !== undefined && max !== undefined) return [...whole, msg`${min} to ${max}`]
  if (min !== undefined) return [...whole, msg`at least ${min}`]
  return max === undefined ? whole : [...whole, msg`at most ${max}`]
}

function lengthRules({ minLength, maxLength }: TemplateVariable): MessageDescriptor[] {
  if (minLength !== undefined && maxLength !== undefined) return [msg`${minLength} to ${maxLength} characters`]
  if (minLength !== undefined) return [msg`at least ${minLength} characters`]
  return maxLength === undefined ? [] : [msg`at most ${maxLength} characters`]
}
