// A field for one variable of a template, by the rules that the template gives it.
import { Checkbox, NativeSelect, PasswordInput, TextInput } from '@mantine/core'
import type { TemplateVariable } from '../../../src/sdk/index.ts'

type Value = string | number | boolean
export type VariableValues = Record<string, Value>

export const isShown = ({ isEditable = true, isVisible = true }: TemplateVariable) => isEditable && isVisible

/** Whether the game cannot be started before somebody says. */
export const isAsked = ({ isRequired, default: initial }: TemplateVariable) =>
  isRequired === true && (initial === undefined || initial === '')

interface Props {
  variable: TemplateVariable
  value: Value | undefined
  onChange: (value: Value) => void
  /** What is there already and not shown. */
  placeholder?: string
  error?: string | null
}

export function VariableField({ variable, value = variable.default, onChange, placeholder, error = null }: Props) {
  const { type, name, title = name, description, isRequired = false } = variable
  const common = { label: title, description, required: isRequired, withAsterisk: false, error }
  const text = value === undefined ? '' : String(value)
  if (type === 'boolean') {
    return (
      <Checkbox
        label={title}
        description={description}
        error={error}
        checked={value === true || value === (variable.whenTrue ?? 'true')}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    )
  }
  if (type === 'choice') {
    const choices = [...(text === '' ? [''] : []), ...(variable.choices ?? [])]
    return (
      <NativeSelect {...common} data={choices} value={text} onChange={(event) => onChange(event.currentTarget.value)} />
    )
  }
  if (type === 'secret') {
    return (
      <PasswordInput
        {...common}
        required={isRequired && placeholder === undefined}
        placeholder={placeholder}
        autoComplete="off"
        value={text}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    )
  }
  const isNumber = type === 'integer' || type === 'number'
  return (
    <TextInput
      {...common}
      {...(isNumber
        ? { type: 'number', min: variable.min, max: variable.max, step: type === 'integer' ? 1 : 'any' }
        : {})}
      minLength={variable.minLength}
      maxLength={variable.maxLength}
      value={text}
      onChange={({ currentTarget }) =>
        onChange(isNumber && currentTarget.value !== '' ? currentTarget.valueAsNumber : currentTarget.value)
      }
    />
  )
}
