// Reading and writing one file for control, which has let the caller in and names the file in a link.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { fail } from '../../contract/errors.ts'
import { bodyOf } from '../../http/bodies.ts'
import { whileClientStays } from '../../http/client-left.ts'
import { timeOf } from '../../http/dates.ts'
import type { Forward } from '../../http/forward.ts'
import { openContent, writeContent } from '../files/content.ts'
import { aboutField, aboutFieldAsync } from '../files/field-faults.ts'
import type { FilesOfAgent } from '../files/index.ts'
import { changeOf, type LinkDoor } from './link-door.ts'
import { serveFile } from './serve-file.ts'

export interface ContentDeps {
  files: FilesOfAgent
  door: LinkDoor
}

export function serveContent(
  { files, door }: ContentDeps,
  link: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  return door.transfer('read-content', link, async (opened, signal) => {
    const content = aboutField('/path', () => openContent(files.server(opened.serverId), opened.detail.path))
    // Bytes, whatever they are: this is the address of the API and of the panel, and no place for pages of others.
    return await whileClientStays(reply, signal, (staying) =>
      serveFile({ ...content, mime: 'application/octet-stream' }, request, reply, staying),
    )
  })
}

export function acceptContent(
  { files, door }: ContentDeps,
  link: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  return door.transfer('write-content', link, async (opened, signal) => {
    const { path, maxBytes, ifMatch, ifNoneMatch, ifUnmodifiedSince, overwrite } = opened.detail
    const expectedBytes = announcedBytes(request)
    const { entry, etag, created } = await aboutFieldAsync('/path', () =>
      writeContent(files.server(opened.serverId), path, bodyOf(request.raw, { signal }), {
        ...(typeof ifMatch === 'string' ? { ifMatch } : {}),
        ...(typeof ifNoneMatch === 'string' ? { ifNoneMatch } : {}),
        ...(typeof ifUnmodifiedSince === 'string' ? { ifUnmodifiedSince: timeOf(ifUnmodifiedSince) } : {}),
        overwrite: overwrite !== false,
        maxBytes,
        ...(expectedBytes === undefined ? {} : { expectedBytes }),
        signal,
        change: changeOf('file.written', opened, request),
      }),
    )
    return reply
      .code(created ? 201 : 200)
      .header('etag', etag)
      .send(entry)
  })
}

/** What the sender says it will send, so that it can be refused before the first byte. A part is never taken for the whole. */
export function announcedBytes({ headers }: FastifyRequest): number | undefined {
  if (headers['content-range'] !== undefined)
    throw fail('invalid_request', 'Content-Range is not supported here: send all of it at once, or in parts by tus.')
  const length = headers['content-length']
  return length === undefined ? undefined : Number(length)
}

export function createForward(deps: ContentDeps): Forward {
  return async (purpose, link, request, reply) => {
    if (purpose === 'read-content') return await serveContent(deps, link, request, reply)
    if (purpose === 'write-content') return await acceptContent(deps, link, request, reply)
    throw fail('not_found', 'The link is not valid or has expired.')
  }
}
