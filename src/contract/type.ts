// TypeBox's words for schemas, as much of them as is used here, and its types for what they describe. Of its code nothing is
// loaded: it is hundreds of modules, which every command and every test would wait for, and a schema is a plain object.
import type TypeBox from 'typebox'

type Words =
  | 'Array'
  | 'Boolean'
  | 'Integer'
  | 'Literal'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Record'
  | 'String'

type Schema = Record<string, unknown>

/** Marks a field that may be absent, for the object that has it. Nobody else sees it. */
const OPTIONAL = Symbol('optional')

const of =
  (type: string) =>
  (options: Schema = {}) => ({ type, ...options })

const isRequired = (schema: object) => !Object.hasOwn(schema, OPTIONAL)

/** The names that a record may have are given by a pattern, or are any. */
const patternOf = (key: Schema) => (typeof key.pattern === 'string' ? key.pattern : '^.*$')

const words = {
  Array: (items: Schema, options: Schema = {}) => ({ type: 'array', items, ...options }),
  Boolean: of('boolean'),
  Integer: of('integer'),
  Literal: (value: string | number | boolean, options: Schema = {}) => ({
    type: typeof value,
    const: value,
    ...options,
  }),
  Null: of('null'),
  Number: of('number'),
  Object(properties: Record<string, Schema>, options: Schema = {}) {
    const required = Object.keys(properties).filter((name) => isRequired(properties[name] as Schema))
    return { type: 'object', ...(required.length > 0 ? { required } : {}), properties, ...options }
  },
  Optional: (schema: Schema) => Object.defineProperty({ ...schema }, OPTIONAL, { value: true }),
  Record: (key: Schema, value: Schema, options: Schema = {}) => ({
    type: 'object',
    patternProperties: { [patternOf(key)]: value },
    ...options,
  }),
  String: of('string'),
  Union: (anyOf: Schema[], options: Schema = {}) => ({ anyOf, ...options }),
  Unknown: (options: Schema = {}) => ({ ...options }),
  Unsafe: (schema: Schema) => ({ ...schema }),
}

export const Type = words as unknown as Pick<typeof TypeBox, Words | 'Union' | 'Unknown' | 'Unsafe'>
export type { Static, TObject, TProperties, TSchema, TUnsafe } from 'typebox'
