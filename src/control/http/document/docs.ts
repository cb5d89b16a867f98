// The OpenAPI document and its interactive page.
import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import { BASE_PATH } from '../../../contract/operation.ts'
import { completeDocument } from './document.ts'
import { NO_QUERY } from './openapi.ts'
import { referencePage } from './reference-page.ts'

const SESSION =
  'For the panel. Over HTTPS its name is `__Host-gamekeeper`. Needs the header `X-Gamekeeper-Session`, and changes an `Origin` that is this service.'
const DOCUMENT_PATH = `${BASE_PATH}/openapi.json`

/** Must be registered before the routes that it describes. */
export async function describeRoutes(app: FastifyInstance, publicUrl: string | null, version: string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Gamekeeper',
        version,
        description: 'The files, backups, subdomains and history of game servers.',
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: publicUrl ?? '/' }],
      components: {
        securitySchemes: {
          token: { type: 'http', scheme: 'bearer' },
          session: { type: 'apiKey', in: 'cookie', name: 'gamekeeper', description: SESSION },
        },
      },
    },
    transformObject: (generated) => {
      if (!('openapiObject' in generated)) throw new TypeError('not an OpenAPI document')
      completeDocument(generated.openapiObject as Parameters<typeof completeDocument>[0])
      return generated.openapiObject
    },
  })
}

export function documentRoutes(app: FastifyInstance): void {
  app.get(DOCUMENT_PATH, { schema: { hide: true, querystring: NO_QUERY } }, async () => app.swagger())
  // Browsers ask for one, and would report that there is none as an error of the page.
  app.get('/favicon.ico', { schema: { hide: true } }, (_request, reply) => reply.code(204).send())
  referencePage(app, DOCUMENT_PATH)
}
