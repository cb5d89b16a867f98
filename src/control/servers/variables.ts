// The values that a server gives to the variables of its template. Secrets are kept apart from what is shown.
import { type FieldFault, fail } from '../../contract/errors.ts'
import type { Template, TemplateVariable } from '../../contract/games/template-format.ts'
import { checkVariables, type VariableValue, type VariableValues } from '../../templates/variables.ts'
import type { ServerRow } from '../db/tables.ts'
import { type Actor, requireAllServers, requireScope } from '../http/actor.ts'

export type StoredVariables = Pick<ServerRow, 'variables' | 'secret_variables'>
/** null takes a value away, so that the default counts again. */
export type VariableChange = Readonly<Record<string, VariableValue | null>>

export const NO_VARIABLES: StoredVariables = { variables: '{}', secret_variables: '{}' }

/** Everything that was given, for a start. */
export const variablesOf = (row: StoredVariables): VariableValues => ({
  ...JSON.parse(row.variables),
  ...JSON.parse(row.secret_variables),
})

/** What anybody may see: of a secret only that there is one. */
export function shownVariables({ variables, secret_variables }: StoredVariables): Record<string, VariableValue | null> {
  if (variables === '{}' && secret_variables === '{}') return {}
  const secrets = Object.keys(JSON.parse(secret_variables)).map((name) => [name, null])
  return { ...JSON.parse(variables), ...Object.fromEntries(secrets) }
}

/** Values of another template that this one does not take are dropped. Every fault is named. */
export function changeVariables(
  actor: Actor,
  template: Template | undefined,
  row: StoredVariables,
  change: VariableChange = {},
): StoredVariables {
  const definitions = new Map((template?.variables ?? []).map((variable) => [variable.name, variable]))
  refuseWrong(definitions, change)
  for (const name of Object.keys(change)) if (definitions.get(name)?.isEditable === false) requireAdmin(actor)
  const kept = Object.entries({ ...variablesOf(row), ...change }).flatMap(([name, value]) => {
    const variable = definitions.get(name)
    return variable === undefined || value === null ? [] : takenValue(variable, value)
  })
  const isHidden = ([name]: [string, unknown]) => {
    const variable = definitions.get(name)
    return variable?.type === 'secret' || variable?.isVisible === false
  }
  return {
    variables: JSON.stringify(Object.fromEntries(kept.filter((entry) => !isHidden(entry)))),
    secret_variables: JSON.stringify(Object.fromEntries(kept.filter(isHidden))),
  }
}

/** The columns that really change. */
export function changedVariables(before: StoredVariables, after: StoredVariables): Partial<StoredVariables> {
  return {
    ...(after.variables === before.variables ? {} : { variables: after.variables }),
    ...(after.secret_variables === before.secret_variables ? {} : { secret_variables: after.secret_variables }),
  }
}

function requireAdmin(actor: Actor): void {
  requireScope(actor, 'servers:admin')
  requireAllServers(actor)
}

/** What is required may be missing until the game is started. */
const faultsOf = (variables: readonly TemplateVariable[], values: VariableValues): FieldFault[] =>
  checkVariables(
    variables.map((variable) => ({ ...variable, isRequired: false })),
    values,
  ).faults

/** With its type: command lines and forms send texts. */
function takenValue(variable: TemplateVariable, value: VariableValue): [string, VariableValue][] {
  const { name } = variable
  const { faults, values } = checkVariables([{ ...variable, isRequired: false }], { [name]: value })
  return faults.length > 0 ? [] : [[name, values[name] ?? value]]
}

function refuseWrong(definitions: ReadonlyMap<string, TemplateVariable>, change: VariableChange): void {
  const given = Object.entries(change).filter((entry): entry is [string, VariableValue] => entry[1] !== null)
  const errors = faultsOf([...definitions.values()], Object.fromEntries(given))
  if (errors.length === 0) return
  const names = errors.map(({ path, message }) => `${path} ${message}`)
  throw fail('invalid_request', { detail: `The body is not valid: ${names.slice(0, 5).join('; ')}.`, errors })
}
