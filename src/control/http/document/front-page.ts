// What a browser shows at the address of the service: the panel, or a page that leads to the API where none was built.
import type { FastifyInstance } from 'fastify'
import type { Panel } from '../../../http/panel.ts'
import { NO_QUERY } from './openapi.ts'

/** Relative links: behind a proxy the service may have a path of its own. No style and no script, so that none is allowed. */
const page = (version: string) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Gamekeeper</title>
<h1>Gamekeeper ${version}</h1>
<p>This is the API of a Gamekeeper: the files, backups, subdomains and history of game servers.</p>
<ul>
<li><a href="docs/">API reference</a>, to read and to try
<li><a href="v1/game/openapi.json">OpenAPI document</a>, for programs
<li><a href="readyz">Health</a>: whether the service can do its work
</ul>
</html>
`

export function frontPage(app: FastifyInstance, version: string, panel: Panel | null): void {
  if (panel) return void app.get('/', { schema: { hide: true } }, (_request, reply) => panel.sendPage(reply))
  const text = page(version)
  app.get('/', { schema: { hide: true, querystring: NO_QUERY } }, (_request, reply) =>
    reply.type('text/html; charset=utf-8').send(text),
  )
}
