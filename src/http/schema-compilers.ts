// Schemas are compiled by the first request or response that needs them: compiling those of all routes would be the
// longest part of a start.
import serializers from '@fastify/fast-json-stringify-compiler'
import type { Ajv, ValidateFunction } from 'ajv'
import type { FastifySchemaCompiler, FastifyServerOptions } from 'fastify'

type CompilersFactory = NonNullable<NonNullable<FastifyServerOptions['schemaController']>['compilersFactory']>

export const serializersFactory: CompilersFactory = {
  buildSerializer(externalSchemas, options) {
    const compile = serializers.default()(externalSchemas, options)
    return (route) => {
      let serialize: ReturnType<typeof compile> | undefined
      return (data) => {
        serialize ??= compile(route as Parameters<typeof compile>[0])
        return serialize(data)
      }
    }
  },
}

export function validatorCompiler(validators: (httpPart: string | undefined) => Ajv): FastifySchemaCompiler<object> {
  return ({ schema, httpPart }) => {
    let compiled: ValidateFunction | undefined
    const validate = (data: unknown) => {
      compiled ??= validators(httpPart).compile(schema)
      const isValid = compiled(data)
      validate.errors = compiled.errors
      return isValid
    }
    validate.errors = undefined as ValidateFunction['errors']
    return validate
  }
}
