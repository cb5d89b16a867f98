// The interactive page of the OpenAPI document: Scalar's own script, which is read from its package when somebody asks for
// it. Its plugin for Fastify would load hundreds of modules and keep three megabytes at every start.
import { readFile } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'

const SCRIPT = new URL('./js/standalone.js', import.meta.resolve('@scalar/fastify-api-reference'))

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <title>Gamekeeper API</title>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
  </head>
  <body>
    <div id="app"></div>
    <script src="js/scalar.js"></script>
    <script src="js/start.js"></script>
  </body>
</html>
`

// The page brings its scripts and styles with it; it talks to nobody but us.
const POLICY = [
  "default-src 'self'",
  "script-src 'self' 'unsafe-eval'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "frame-ancestors 'none'",
].join('; ')

const HTML = 'text/html; charset=utf-8'
const JAVASCRIPT = 'text/javascript; charset=utf-8'

/** At `/docs/`, for the document at this path. */
export function referencePage(app: FastifyInstance, documentPath: string): void {
  const configuration = {
    url: documentPath,
    authentication: { preferredSecurityScheme: 'token' },
    withDefaultFonts: false,
    // What would talk to anybody but this instance.
    telemetry: false,
    hideClientButton: true,
    agent: { disabled: true },
    showDeveloperTools: 'never',
  }
  const start = `Scalar.createApiReference('#app', ${JSON.stringify(configuration)})\n`
  const show = (path: string, type: string, content: () => Promise<unknown>) =>
    app.get(path, { schema: { hide: true } }, async (_request, reply) =>
      reply
        .header('content-security-policy', POLICY)
        .type(type)
        .send(await content()),
    )
  // Its scripts are found from there, also behind a proxy that puts something before the path.
  app.get('/docs', { schema: { hide: true } }, (request, reply) => {
    if (!request.url.split('?', 1)[0]?.endsWith('/')) return reply.redirect('docs/')
    return reply.header('content-security-policy', POLICY).type(HTML).send(PAGE)
  })
  show('/docs/js/start.js', JAVASCRIPT, async () => start)
  show('/docs/js/scalar.js', JAVASCRIPT, () => readFile(SCRIPT))
  const lead = (from: string, to: string) =>
    app.get(from, { schema: { hide: true } }, (_request, reply) => reply.redirect(to))
  // Where its plugin for Fastify offers the document too.
  lead('/docs/openapi.json', documentPath)
  lead('/docs/openapi.yaml', documentPath)
}
