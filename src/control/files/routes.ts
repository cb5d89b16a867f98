import * as files from '../../contract/files/files.ts'
import { whileClientStays } from '../../http/client-left.ts'
import type { Forward } from '../../http/forward.ts'
import { type Api, serve } from '../http/route.ts'
import type { Files } from './service.ts'
import type { FileWork } from './work.ts'

export function fileRoutes(api: Api, service: Files, work: FileWork): void {
  serve(api, files.deleteFiles, (call) => service.remove(call.actor, call.params.serverId, call.body))
  serve(api, files.createFolder, (call) => service.makeFolder(call.actor, call.params.serverId, call.body), {
    status: ({ created }) => (created ? 201 : 200),
    body: ({ entry }) => entry,
  })
  serve(api, files.copyFile, (call) => {
    const gone = new AbortController()
    call.reply.raw.once('close', () => gone.abort())
    return service.copy(call.actor, call.params.serverId, call.body.location, gone.signal)
  })
  serve(api, files.requestUpload, (call) =>
    service.requestUpload(call.actor, call.params.serverId, api.baseUrlOf(call.request)),
  )
  serve(api, files.listFiles, (call) => service.list(call.actor, call.params.serverId, call.query))
  serve(api, files.moveFiles, (call) => service.move(call.actor, call.params.serverId, call.body))
  serve(api, files.setFileMode, (call) => service.setMode(call.actor, call.params.serverId, call.body))
  serve(api, files.requestDownload, ({ actor, params, query, request }) =>
    service.requestDownload(actor, params.serverId, api.baseUrlOf(request), query.path, query.format),
  )
  serve(api, files.packFiles, (call) => work.pack(call.actor, call.params.serverId, call.body))
  serve(api, files.unpackFile, (call) => work.unpack(call.actor, call.params.serverId, call.body))
  serve(api, files.pullFile, (call) => work.pull(call.actor, call.params.serverId, call.body))
  serve(api, files.searchFiles, ({ actor, params, query, reply }) =>
    whileClientStays(reply, new AbortController().signal, (signal) =>
      service.search(actor, params.serverId, query, signal),
    ),
  )
  serve(api, files.listTrash, (call) => service.listTrash(call.actor, call.params.serverId, call.query))
  serve(api, files.restoreTrash, (call) => service.restore(call.actor, call.params.serverId, call.params.trashId))
  serve(api, files.emptyTrash, (call) => service.emptyTrash(call.actor, call.params.serverId))
  serve(api, files.readUsage, (call) => service.usage(call.actor, call.params.serverId))
}

/** The two whose bytes go to and from the agent: control decides, the agent reads and writes. */
export function contentRoutes(api: Api, service: Files, forward: Forward, maxBytes: number): void {
  serve(api, files.readContent, async ({ actor, params, query, request, reply }) => {
    const link = await service.linkForContent(actor, params.serverId, 'read-content', { path: query.path })
    await forward('read-content', link, request, reply)
    return undefined
  })
  serve(api, files.writeContent, async ({ actor, params, query, request, reply }) => {
    const { path, overwrite = true } = query
    const { 'if-match': ifMatch = null, 'if-none-match': ifNoneMatch = null } = request.headers
    const { 'if-unmodified-since': ifUnmodifiedSince = null } = request.headers
    const link = await service.linkForContent(actor, params.serverId, 'write-content', {
      path,
      ifMatch,
      ifNoneMatch,
      ifUnmodifiedSince,
      overwrite,
      maxBytes,
    })
    await forward('write-content', link, request, reply)
    return undefined as never
  })
}
