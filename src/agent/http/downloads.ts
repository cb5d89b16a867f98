// What a download link names: a file with ranges, or files and directories as an archive made while it is sent.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ArchiveFormat } from '../../contract/agent/agent-files.ts'
import { fail } from '../../contract/errors.ts'
import type { OpenedLink } from '../../http/signed-links.ts'
import type { Shares } from '../fair-shares.ts'
import { ARCHIVE_MIME, writeArchive } from '../files/archives/formats.ts'
import { treeEntries } from '../files/archives/pack.ts'
import { openContent } from '../files/content.ts'
import { kindOf } from '../files/reading/entries.ts'
import type { ServerFiles } from '../files/server-files.ts'
import { untrustedHeaders } from './disposition.ts'
import { sendStream, serveFile } from './serve-file.ts'

export async function serveDownload(
  { server, archives }: { server: ServerFiles; archives: Shares },
  { detail }: OpenedLink<'download'>,
  signal: AbortSignal,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { path, format } = detail
  if (format === 'raw') {
    // Bytes, whatever their name asks for: as a script they would be one of our own origin.
    const content = { ...openContent(server, path), mime: 'application/octet-stream' }
    return await serveFile(content, request, reply, signal)
  }
  return await archives.run(server.serverId, signal, () => serveArchive(server, path, format, signal, request, reply))
}

async function serveArchive(
  { files, serverId }: ServerFiles,
  path: string,
  format: ArchiveFormat,
  signal: AbortSignal,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const segments = files.resolve(path)
  if (kindOf(files.lstat(segments)) === 'other') throw fail('invalid_path', 'It is neither a file nor a directory.')
  const name = segments.at(-1) ?? serverId
  reply.headers({
    'content-type': ARCHIVE_MIME[format],
    ...untrustedHeaders(`${name}.${format}`),
    'accept-ranges': 'none',
  })
  if (request.method === 'HEAD') return reply.send()
  // Named with the directory itself, so that unpacking it makes one thing.
  const entries = treeEntries(files, segments.slice(0, -1), [segments], signal)
  return await sendStream(writeArchive(format, entries), reply, signal)
}
