// Schemas are compiled by the first request or response that needs them: compiling those of all routes would be the
// longest part of a start.
import { tracingChannel } from 'node:diagnostics_channel'
import serializers from '@fastify/fast-json-stringify-compiler'
import type { Ajv, ValidateFunction } from 'ajv'
import type { FastifySchemaCompiler, FastifyServerOptions } from 'fastify'

type CompilersFactory = NonNullable<NonNullable<FastifyServerOptions['schemaController']>['compilersFactory']>

type Serialize = (data: unknown) => string

/** For the services of a process: their schemas are the same, and refer to no other. */
const compiled = new WeakMap<object, Serialize>()

/** For who watches the turns of the event loop: it happens once in the life of a process, whoever asks. */
const compiling = tracingChannel('gamekeeper.compile')

export const serializersFactory: CompilersFactory = {
  buildSerializer(externalSchemas, options) {
    const compile = serializers.default()(externalSchemas, options)
    return (route) => {
      const schema = route.schema as object
      function compileOnce(): Serialize {
        const known =
          compiled.get(schema) ??
          compiling.traceSync(() =>
            compile({ ...route, schema: withPlainNulls(schema) } as Parameters<typeof compile>[0]),
          )
        compiled.set(schema, known)
        return known
      }
      let serialize: Serialize | undefined
      return (data) => {
        serialize ??= compileOnce()
        return serialize(data)
      }
    }
  },
}

/** "This object or null" in the words that a serializer writes at once; for a union it would ask a validator each time. */
function withPlainNulls(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withPlainNulls)
  if (typeof schema !== 'object' || schema === null) return schema
  const { anyOf, ...rest } = schema as { anyOf?: { type?: unknown }[] }
  const [first, second] = anyOf ?? []
  if (anyOf?.length === 2 && first?.type === 'object' && second?.type === 'null')
    return withPlainNulls({ ...rest, ...first, nullable: true })
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, withPlainNulls(value)]))
}

export function validatorCompiler(validators: (httpPart: string | undefined) => Ajv): FastifySchemaCompiler<object> {
  return ({ schema, httpPart }) => {
    let compiled: ValidateFunction | undefined
    const validate = (data: unknown) => {
      compiled ??= compiling.traceSync(() => validators(httpPart).compile(schema))
      const isValid = compiled(data)
      validate.errors = compiled.errors
      return isValid
    }
    validate.errors = undefined as ValidateFunction['errors']
    return validate
  }
}
