// What a download link names: a file with ranges, or a directory as an archive made while it is sent.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { OpenedLink } from '../../http/signed-links.ts'
import { openContent } from '../files/content.ts'
import type { ServerFiles } from '../files/server-files.ts'
import { textOf } from './link-door.ts'
import { serveFile } from './serve-file.ts'

export async function serveDownload(
  server: ServerFiles,
  opened: OpenedLink,
  signal: AbortSignal,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  return await serveFile(openContent(server, textOf(opened, 'path')), request, reply, signal)
}
