// Uploads as a form: the repeatable field `files`, what people's scripts for other panels send.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { invalidField } from '../../contract/errors.ts'
import { bodyOf } from '../../http/bodies.ts'
import type { OpenedLink } from '../../http/signed-links.ts'
import { aboutField } from '../files/field-faults.ts'
import { type NamedSource, writeBatch } from '../files/uploads/batch.ts'
import { announcedBytes, type ContentDeps } from './content.ts'
import { parseDisposition } from './disposition.ts'
import { changeOf } from './link-door.ts'
import { boundaryOf, type Part, readMultipart } from './multipart.ts'

const FIELDS = ['files', 'files[]']
/** The body of a form is its files and this much more, unless they are thousands. */
const FRAMING_BYTES = 1024 * 1024

export interface UploadQuery {
  directory?: string
  overwrite?: boolean
  skipIdentical?: boolean
}

export async function acceptForm(
  { files, door }: ContentDeps,
  opened: OpenedLink<'upload'>,
  signal: AbortSignal,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { directory = '/', overwrite = true, skipIdentical = false } = request.query as UploadQuery
  const boundary = boundaryOf(request.headers['content-type'])
  const onBytes = () => door.renew(opened.detail.uploadId)
  const parts = readMultipart(bodyOf(request.raw, { signal, onBytes }), boundary)
  const entries = await writeBatch(files.server(opened.serverId), filesOf(parts), {
    directory,
    overwrite,
    skipIdentical,
    maxBytes: opened.detail.maxBytes,
    expectedBytes: Math.max(0, (announcedBytes(request) ?? 0) - FRAMING_BYTES),
    signal,
    change: changeOf('file.uploaded', opened, request),
  })
  return reply.send({ data: entries })
}

async function* filesOf(parts: AsyncIterable<Part>): AsyncGenerator<NamedSource> {
  let count = 0
  for await (const { headers, body } of parts) {
    const { name, filename } = aboutField(`/files/${count}`, () => parseDisposition(headers.get('content-disposition')))
    if (!FIELDS.includes(name)) throw formFault(`/${name}`, 'is not a known field; files are sent as "files"')
    if (filename === undefined) throw formFault('/files', 'must be a file with a name')
    if (filename === '') throw formFault('/files', 'has an empty file name')
    count++
    yield { name: filename, bytes: body }
  }
  if (count === 0) throw formFault('/files', 'is required')
}

const formFault = (path: string, message: string) => invalidField(path, message, 'form')
