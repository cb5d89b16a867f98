// The OpenAPI document and its interactive page.
import swagger from '@fastify/swagger'
import reference from '@scalar/fastify-api-reference'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { BASE_PATH } from '../../../contract/operation.ts'
import { completeDocument } from './document.ts'
import { NO_QUERY } from './openapi.ts'

const SESSION =
  'For the panel. Over HTTPS its name is `__Host-gamekeeper`. Changes need an `Origin` that is this service.'
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

export async function documentRoutes(app: FastifyInstance): Promise<void> {
  app.get(DOCUMENT_PATH, { schema: { hide: true, querystring: NO_QUERY } }, async () => app.swagger())
  // Browsers ask for one, and would report that there is none as an error of the page.
  app.get('/favicon.ico', { schema: { hide: true } }, (_request, reply) => reply.code(204).send())
  await app.register(async (page) => {
    page.addHook('onSend', (_request, reply, payload, done) => {
      // The page brings its scripts and styles with it; it talks to nobody but us.
      reply.header(
        'content-security-policy',
        "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; frame-ancestors 'none'",
      )
      done(null, payload)
    })
    await page.register(reference, {
      routePrefix: '/docs',
      hooks: { onRequest: leadToTheDocument },
      configuration: {
        url: DOCUMENT_PATH,
        authentication: { preferredSecurityScheme: 'token' },
        withDefaultFonts: false,
        // What would talk to anybody but this instance.
        telemetry: false,
        hideClientButton: true,
        agent: { disabled: true },
        showDeveloperTools: 'never',
      },
    })
  })
}

/** The page offers the document under its own name too, but knows only where it is. */
function leadToTheDocument(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  if (/^\/docs\/openapi\.(json|yaml)/.test(request.url)) reply.redirect(DOCUMENT_PATH)
  else done()
}
