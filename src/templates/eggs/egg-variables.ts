import { TEMPLATE_VARIABLES_MAX } from '../../contract/fixed-limits.ts'
import type { TemplateVariable } from '../../contract/games/template-format.ts'
import { checkVariables } from '../variables.ts'
import { SERVER_ENVIRONMENT } from './egg-placeholders.ts'
import { type EggReader, isRecord } from './egg-reader.ts'
import { readRules, splitRules } from './egg-rules.ts'
import type { Path } from './ledger.ts'

const NAME = /^[A-Za-z_]\w{0,63}$/
const SECRET = /PASS|PASSWD|PASSWORD|TOKEN|SECRET|_PW$|(?:^|_)(?:API|LICENSE)_?KEY$/

export function importVariables(egg: EggReader): TemplateVariable[] {
  const listed = egg.value(['variables'])
  if (!Array.isArray(listed)) {
    if (isRecord(listed)) egg.ledger.dropped(['variables'], 'must be a list')
    return []
  }
  const names = new Set<string>()
  const variables: (TemplateVariable & { sort: number })[] = []
  for (const [index, entry] of listed.entries()) {
    const path: Path = ['variables', index]
    const refusal = refusalOf(entry, names, variables.length)
    if (refusal !== null) {
      egg.ledger.dropped(path, refusal)
      continue
    }
    const fields = entry as Record<string, unknown>
    names.add(String(fields.env_variable))
    const sort = typeof fields.sort === 'number' ? fields.sort : index + 1
    variables.push({ ...importVariable(egg, path, fields), sort })
  }
  return variables.sort((one, other) => one.sort - other.sort).map(({ sort: _, ...variable }) => variable)
}

function refusalOf(entry: unknown, names: ReadonlySet<string>, count: number): string | null {
  if (!isRecord(entry)) return 'must be an object'
  const name = entry.env_variable
  if (typeof name !== 'string' || !NAME.test(name) || name === '__proto__')
    return 'has no name that an environment variable may have'
  if (Object.hasOwn(SERVER_ENVIRONMENT, name)) return `is not needed: ${name} is known of every server`
  if (names.has(name)) return `is there twice: ${name}`
  return count >= TEMPLATE_VARIABLES_MAX ? `is one of more than ${TEMPLATE_VARIABLES_MAX}` : null
}

function importVariable(egg: EggReader, path: Path, fields: Record<string, unknown>): TemplateVariable {
  const { ledger } = egg
  const name = String(fields.env_variable)
  ledger.carried([...path, 'env_variable'])
  const title = egg.line([...path, 'name'], 191)
  const description = egg.prose([...path, 'description'], 4000)
  const variable: TemplateVariable = {
    name,
    ...(title ? { title } : {}),
    ...(description ? { description } : {}),
    ...importRules(egg, [...path, 'rules'], fields.rules),
  }
  if (variable.type === 'text' && SECRET.test(name.toUpperCase())) {
    variable.type = 'secret'
    ledger.changed(path, 'is kept as a secret, by its name')
  }
  for (const [field, flag] of [
    ['user_viewable', 'isVisible'],
    ['user_editable', 'isEditable'],
  ] as const) {
    const value = fields[field]
    if (value === undefined) continue
    if (![true, false, 0, 1].includes(value as boolean)) {
      ledger.dropped([...path, field], 'must be true or false')
      continue
    }
    ledger.carried([...path, field])
    if (!value) variable[flag] = false
  }
  importDefault(egg, [...path, 'default_value'], variable, fields.default_value)
  if (typeof fields.sort === 'number') ledger.carried([...path, 'sort'])
  if (fields.field_type === 'text') ledger.carried([...path, 'field_type'])
  return variable
}

function importRules(egg: EggReader, path: Path, rules: unknown): ReturnType<typeof readRules>['variable'] {
  const list = splitRules(rules)
  const { variable, dropped } = readRules(list)
  for (const { rule, index, message } of dropped)
    egg.ledger.dropped(Array.isArray(rules) ? [...path, index] : path, `${shown(rule)} ${message}`)
  if (!Array.isArray(rules)) {
    if (dropped.length < list.length) egg.ledger.carried(path)
  } else
    for (const index of list.keys())
      if (!dropped.some((note) => note.index === index)) egg.ledger.carried([...path, index])
  return variable
}

/** A default that breaks its own rules would make every server without a value of its own wrong. */
function importDefault({ ledger }: EggReader, path: Path, variable: TemplateVariable, value: unknown): void {
  if (value === null || value === undefined || value === '') return
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') {
    ledger.dropped(path, 'must be a text, a number, true or false')
    return
  }
  const checked = checkVariables([{ ...variable, isRequired: false }], { [variable.name]: value })
  const [fault] = checked.faults
  if (fault) {
    ledger.changed(path, `${shown(value)} ${fault.message} by its own rules, so there is no default`)
    return
  }
  variable.default = checked.values[variable.name] ?? value
  const written = checked.texts[variable.name]
  if (written === String(value)) ledger.carried(path)
  else ledger.changed(path, `${shown(value)} is written as ${written}`)
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? ''
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}
