// From the schemas of the contract to those of the document: each has one name and is written once.
import { NAMED_SCHEMAS } from '../../../contract/named-schemas.ts'
import { Problem } from '../../../contract/schema.ts'

export interface JsonSchema {
  $ref?: string
  properties?: Record<string, JsonSchema>
  items?: JsonSchema
  examples?: unknown[]
  [keyword: string]: unknown
}

export interface SchemaNames {
  /** `written` is the body in the contract, `schema` what is documented of it: optional fields take null there. */
  body(operationId: string, written: object, schema: object): JsonSchema
  answer(operationId: string, schema: object): JsonSchema
  problem(schema: JsonSchema): JsonSchema
  /** Every schema that has been named, by name. */
  components(): Record<string, JsonSchema>
}

const PROBLEM = 'Problem'

export function createSchemaNames(): SchemaNames {
  const byText = new Map(Object.entries(NAMED_SCHEMAS).map(([name, schema]) => [textOf(plain(schema)), name]))
  const used = new Map<string, { schema: object; text: string; inner: JsonSchema }>()

  function use(name: string, schema: object): JsonSchema {
    const known = used.get(name)
    if (known?.schema !== schema) {
      const text = textOf(plain(schema))
      if (known && known.text !== text) throw new TypeError(`two schemas are called ${name}`)
      if (!known) used.set(name, { schema, text, inner: withNames(plain(schema), true) })
    }
    return { $ref: `#/components/schemas/${name}` }
  }

  /** With every schema inside that has a name replaced by it. */
  function withNames<T>(value: T, isTop = false): T {
    if (Array.isArray(value)) return value.map((item) => withNames(item)) as T
    if (typeof value !== 'object' || value === null) return value
    const name = isTop ? undefined : byText.get(textOf(value))
    if (name !== undefined) return use(name, value as JsonSchema) as T
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withNames(inner)])) as T
  }

  function pageName(schema: JsonSchema): string | undefined {
    const item = byText.get(textOf(schema.properties?.data?.items ?? {}))
    return item && schema.properties?.nextCursor ? `${item}Page` : undefined
  }

  return {
    body(operationId, written, schema) {
      const name = byText.get(textOf(plain(written))) ?? `${capitalized(operationId)}Request`
      return use(name, schema)
    },
    answer(operationId, schema) {
      const name = byText.get(textOf(plain(schema))) ?? pageName(plain(schema)) ?? `${capitalized(operationId)}Answer`
      return use(name, schema)
    },
    problem: ({ properties }) => ({
      allOf: [use(PROBLEM, Problem), { type: 'object', properties: { code: properties?.code ?? {} } }],
    }),
    components() {
      const named = [...used].map(([name, { inner }]) => [name, inner] as const)
      return Object.fromEntries(named.sort(([a], [b]) => (a < b ? -1 : 1)))
    },
  }
}

const ANY_NAME = '^.*$'

/** Without what only the library sees. Fields of any name are said as everybody says it, without a pattern. */
const plain = (schema: object): JsonSchema => JSON.parse(JSON.stringify(schema), withoutAnyName)

function withoutAnyName(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('patternProperties' in value)) return value
  const { patternProperties, ...rest } = value as { patternProperties?: Record<string, object> }
  const any = patternProperties?.[ANY_NAME]
  return any ? { ...rest, additionalProperties: any } : value
}

const capitalized = (id: string) => id.charAt(0).toUpperCase() + id.slice(1)

/** The same for the same schema, whatever the order of its keywords. */
function textOf(schema: object): string {
  return JSON.stringify(schema, (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}
