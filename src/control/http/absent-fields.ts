// Clients that fill in every field of a request send null, or an empty name, for what they leave out. An optional field
// takes both and counts as absent, unless null has a meaning of its own there.
import { BLANK_IS_ABSENT, withNull } from '../../contract/schema.ts'

interface JsonSchema {
  type?: string | string[]
  properties?: Record<string, JsonSchema>
  required?: readonly string[]
  items?: JsonSchema
  anyOf?: JsonSchema[]
  minLength?: number
  pattern?: string
  description?: string
  [BLANK_IS_ABSENT]?: boolean
}

/** The schema as it is documented and validated: optional fields take what counts as absent. */
export function takingAbsent(schema: object): object {
  const { properties, required = [], items, ...rest } = schema as JsonSchema
  if (items?.properties) return { ...rest, items: takingAbsent(items) }
  if (!properties) return schema
  const fields = Object.entries(properties).map(([name, field]) => [
    name,
    required.includes(name) ? takingAbsent(field) : optional(takingAbsent(field)),
  ])
  return { ...rest, required, properties: Object.fromEntries(fields) }
}

function optional(field: JsonSchema): object {
  const widened = takesNull(field) ? field : (withNull(field) as JsonSchema)
  if (!field[BLANK_IS_ABSENT]) return widened
  const description = [field.description, 'Empty counts as absent'].filter(Boolean).join('. ')
  return { ...widened, description, minLength: 0, pattern: `^$|${field.pattern ?? ''}` }
}

/** Takes out of a body what counts as absent; what the schema does not know is left for the validator to refuse. */
export function dropAbsent({ properties, required = [], items }: JsonSchema, value: unknown): void {
  if (Array.isArray(value)) {
    if (items?.properties) for (const item of value) dropAbsent(items, item)
    return
  }
  if (!properties || typeof value !== 'object' || value === null) return
  const fields = value as Record<string, unknown>
  for (const [name, field] of Object.entries(properties)) {
    if (!Object.hasOwn(fields, name)) continue
    if (!required.includes(name) && isAbsent(field, fields[name])) delete fields[name]
    else dropAbsent(field, fields[name])
  }
}

function isAbsent(schema: JsonSchema, value: unknown): boolean {
  return value === null ? !takesNull(schema) : value === '' && schema[BLANK_IS_ABSENT] === true
}

const takesNull = ({ type, anyOf }: JsonSchema): boolean =>
  [type].flat().includes('null') || (anyOf?.some(takesNull) ?? false)
