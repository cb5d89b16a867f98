// The agent's own HTTP routes: bytes in and out, for the holder of a signed link. They take no token: the link is one,
// for one purpose, one server and a short time, and it dies with the token it was issued for.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { UPLOAD_QUERY } from '../../contract/files/link-operations.ts'
import { ARCHIVES_BEING_SENT } from '../../contract/fixed-limits.ts'
import { Closed } from '../../contract/schema.ts'
import { answerBeforeTheEnd, takeBodiesAsStreams } from '../../http/bodies.ts'
import { whileClientStays } from '../../http/client-left.ts'
import { createShares } from '../fair-shares.ts'
import type { ServeBackup } from './backup-downloads.ts'
import type { ContentDeps } from './content.ts'
import { serveDownload } from './downloads.ts'
import { acceptTus, isTus } from './tus.ts'
import type { TusUploads } from './tus-uploads.ts'
import { acceptForm } from './uploads.ts'

const BASE = '/v1/game'
const UPLOADS = `${BASE}/uploads/:link`

export interface AgentRoutesDeps extends ContentDeps {
  uploads: TusUploads
  serveBackup: ServeBackup
}

export function agentRoutes(app: FastifyInstance, deps: AgentRoutesDeps): void {
  const archives = createShares(ARCHIVES_BEING_SENT)
  takeBodiesAsStreams(app)
  answerBeforeTheEnd(app)
  // A server that waits for its answers to end would wait for as long as an upload takes.
  app.addHook('preClose', async () => deps.door.close())
  const config = { openedBy: 'link' } as object
  const schema = { hide: true, querystring: Closed({}) } as object
  // Also where a tus upload goes on: clients may keep the query of the address that they were given.
  const uploadSchema = { hide: true, querystring: UPLOAD_QUERY } as object

  const tus = (request: FastifyRequest, reply: FastifyReply) =>
    deps.door.under('upload', linkOf(request), (opened, signal) => acceptTus(deps, opened, signal, request, reply))

  app.post(UPLOADS, { config, schema: uploadSchema }, (request, reply) =>
    isTus(request)
      ? tus(request, reply)
      : deps.door.transfer('upload', linkOf(request), (opened, signal) =>
          acceptForm(deps, opened, signal, request, reply),
        ),
  )
  app.options(UPLOADS, { config, schema: uploadSchema }, tus)
  app.route({
    method: ['HEAD', 'PATCH', 'DELETE', 'OPTIONS'],
    url: `${UPLOADS}/:tusId`,
    config,
    schema: uploadSchema,
    handler: tus,
  })

  app.route({
    method: ['GET', 'HEAD'],
    url: `${BASE}/downloads/:link`,
    config,
    schema,
    handler: (request, reply) =>
      deps.door.transfer('download', linkOf(request), (opened, signal) =>
        whileClientStays(reply, signal, (staying) =>
          serveDownload({ server: deps.files.server(opened.serverId), archives }, opened, staying, request, reply),
        ),
      ),
  })
  app.route({
    method: ['GET', 'HEAD'],
    url: `${BASE}/backup-downloads/:link`,
    config,
    schema,
    handler: (request, reply) => deps.serveBackup(linkOf(request), request, reply),
  })
}

const linkOf = (request: FastifyRequest) => (request.params as { link: string }).link
