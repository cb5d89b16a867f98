// Requests are validated by two validators: in a query everything is text, so numbers are parsed from it; in a JSON
// body a number is a number. Every fault is reported, not just the first.
import { Ajv, type ErrorObject, type Options } from 'ajv'
import type { DataValidationCxt } from 'ajv/dist/types/index.js'
import addFormats from 'ajv-formats'
import type { FastifyInstance } from 'fastify'
import { FAULTS_MAX, fail } from '../contract/errors.ts'
import { pathNames } from '../contract/files/path-rules.ts'
import { IS_PATH, OTHERWISE } from '../contract/schema.ts'
import { distinctFaults, faultOf, wellFormedRegExp } from '../contract/schema-faults.ts'
import { validatorCompiler } from './schema-compilers.ts'

const OPTIONS: Options = {
  allErrors: true,
  removeAdditional: false,
  useDefaults: true,
  strict: false,
  verbose: true,
  // They are of the contract, and the OpenAPI document with all of them is validated by a test.
  validateSchema: false,
  code: { regExp: wellFormedRegExp },
}
/** A body of a megabyte may have tens of thousands. */
const ERRORS_READ_MAX = 1000

const strict = withOurs(new Ajv({ ...OPTIONS, coerceTypes: false }))
const coercing = withOurs(new Ajv({ ...OPTIONS, coerceTypes: true }))

/** One for the process: a schema that was compiled before is not compiled again. */
export const validatorOf = (httpPart: string | undefined) => (httpPart === 'body' ? strict : coercing)

function withOurs(ajv: Ajv): Ajv {
  addFormats.default(ajv, ['uri'])
  ajv.addFormat('date-time', isTimestamp)
  ajv.addKeyword({ keyword: IS_PATH, type: 'string', modifying: true, errors: false, validate: respellPath })
  return ajv
}

/**
 * Paths have one spelling behind the door: cursors, activity and jobs see the same one whatever the caller wrote. Only
 * what means nothing is taken out; what may be in a path is the agent's to decide.
 */
function respellPath(_schema: unknown, path: string, _parent?: unknown, where?: DataValidationCxt): boolean {
  if (where && path !== '') where.parentData[where.parentDataProperty] = `/${pathNames(path).join('/')}`
  return true
}

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/i

/** Only what becomes a time: a leap second has the form, and would be no number, which compares with nothing. */
function isTimestamp(text: string): boolean {
  const at = RFC_3339.test(text) ? Date.parse(text.toUpperCase()) : Number.NaN
  return at <= LAST_YEAR_ENDS && isCalendarDay(text.slice(0, 10))
}

const LAST_YEAR_ENDS = Date.parse('9999-12-31T23:59:59.999Z')

/** Date.parse takes the 31st of February for a day in March. */
const isCalendarDay = (day: string) => new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)

export function useValidation(app: FastifyInstance): void {
  app.setValidatorCompiler(validatorCompiler(validatorOf))
  app.setSchemaErrorFormatter((errors, part) => fail('invalid_request', requestFaults(errors as ErrorObject[], part)))
}

function requestFaults(all: ErrorObject[], part: string) {
  const errors = all.slice(0, ERRORS_READ_MAX)
  const explained = errors.filter(({ keyword, parentSchema }) => keyword === 'anyOf' && parentSchema?.[OTHERWISE])
  const isExplained = ({ schemaPath }: ErrorObject) =>
    explained.some((outer) => schemaPath.startsWith(`${outer.schemaPath}/`))
  const faults = distinctFaults(errors.filter((error) => !isExplained(error)).map(faultOf)).slice(0, FAULTS_MAX)
  const names = faults.map(({ path, message }) => (path ? `${path} ${message}` : message))
  return { detail: `The ${PARTS[part] ?? part} is not valid: ${names.slice(0, 5).join('; ')}.`, errors: faults }
}

const PARTS: Record<string, string> = { querystring: 'query', params: 'path', body: 'body', headers: 'header' }
