// The small vocabulary that every schema is written in.
import { type Static, type TObject, type TProperties, type TSchema, type TUnsafe, Type } from './type.ts'

export { type Static, type TSchema, Type } from './type.ts'

/** Every object that is sent to us is closed: an unknown field is a fault, not a silent nothing. */
export function Closed<P extends TProperties>(properties: P, options: object = {}): TObject<P> {
  return Type.Object(properties, { additionalProperties: false, ...options })
}

/** One type list instead of a union, so that a wrong value gives one fault and not three. */
export function Nullable<S extends TSchema>(schema: S): TUnsafe<Static<S> | null> {
  return Type.Unsafe<Static<S> | null>(withNull(schema))
}

/** As plain JSON Schema. */
export function withNull(schema: object): object {
  const { type, ...rest } = schema as { type?: string; enum?: unknown[]; anyOf?: object[] }
  if (rest.anyOf) return { ...rest, anyOf: [...rest.anyOf, { type: 'null' }] }
  const widened = rest.enum ? { ...rest, enum: [...rest.enum, null] } : rest
  return { ...widened, type: [type, 'null'] }
}

/** A string out of a fixed set, as a plain JSON Schema enum. */
export function OneOf<const V extends readonly string[]>(values: V, options: object = {}): TUnsafe<V[number]> {
  return Type.Unsafe<V[number]>({ type: 'string', enum: [...values], ...options })
}

// Without lookahead and classes of Unicode, so that they mean the same to every engine that reads the OpenAPI document;
// what is no Unicode at all is refused where they are used. Blanks and what may follow them are disjoint, so that matching
// takes linear time.
const BLANKS = ' \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\ufeff'
const CONTROLS = '\\x00-\\x1f\\x7f-\\x9f'
const LINE_ENDS = '\u2028\u2029'
/** Text for people: no control characters, no lone surrogates, not only blanks. */
export const TEXT = `^[${BLANKS}]*[^${BLANKS}${CONTROLS}${LINE_ENDS}][^${CONTROLS}${LINE_ENDS}]*$`
/** As TEXT, with line breaks and tabs, and it may be empty. */
export const MULTILINE = '^[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f]*$'

const NAME = { minLength: 1, maxLength: 191, pattern: TEXT }
export const Name = Type.String(NAME)

/** Marks an optional text for which an empty one counts as absent; see control/http/absent-fields.ts. */
export const BLANK_IS_ABSENT = 'x-blank-is-absent'
export const OptionalName = Type.Optional(Type.String({ ...NAME, [BLANK_IS_ABSENT]: true }))

/** Marks a text as a path within a server, which is then handed on in one spelling; see http/validation.ts. */
export const IS_PATH = 'x-path'
const PATH = { minLength: 1, maxLength: 4096, [IS_PATH]: true }
/** What may be in a path is decided by the agent, which knows the disk; here only its length is held in bounds. */
export const Path = Type.String(PATH)
/** The top unless given. */
export const Directory = Type.Optional(Type.String({ ...PATH, default: '/' }))

/** What a schema's `anyOf` means, for whoever fits none of it. */
export const OTHERWISE = 'x-otherwise'
/** For text that came another way than by a request. */
export const isName = (text: unknown): text is string =>
  typeof text === 'string' && text.isWellFormed() && [...text].length <= 191 && new RegExp(TEXT, 'u').test(text)
/** Ids are ours: what has other characters is no id, and some of it no database can even look for. */
export const ID_FORM = '^[!-~]{1,128}$'
export const Id = Type.String({ minLength: 1, maxLength: 128, pattern: ID_FORM })
export const Timestamp = Type.String({ format: 'date-time', description: 'RFC 3339, UTC, with milliseconds' })
export const Bytes = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

export const ServerParams = Closed({ serverId: Id })
export type ServerParams = Static<typeof ServerParams>

/** One holds up to a whole path, and is sent in the line of a request, whose headers have 16 KiB. */
export const CURSOR_MAX_CHARS = 12 * 1024

export const PageQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 50 })),
  cursor: Type.Optional(Type.String({ minLength: 1, maxLength: CURSOR_MAX_CHARS })),
}

export function Page<S extends TSchema>(item: S) {
  return Type.Object({ data: Type.Array(item), nextCursor: Nullable(Type.String()) })
}

export interface Page<T> {
  data: T[]
  nextCursor: string | null
}

export const Problem = Type.Object(
  {
    type: Type.String(),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    code: Type.String(),
    requestId: Type.String(),
    errors: Type.Optional(Type.Array(Type.Object({ path: Type.String(), message: Type.String() }))),
  },
  { description: 'RFC 9457 problem details' },
)
export type Problem = Static<typeof Problem>
