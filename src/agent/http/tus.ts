// tus 1.0 on an upload link. @tus/server implements the protocol; the bytes go to disk without passing through its web
// streams, and checksums, which it does not support, are handled here.
import { isUtf8 } from 'node:buffer'
import { DataStore, Server, Upload } from '@tus/server'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type ErrorCode, type Failure, fail, isFailure } from '../../contract/errors.ts'
import { bodyOf } from '../../http/bodies.ts'
import type { OpenedLink } from '../../http/signed-links.ts'
import { newId } from '../../kit/ids.ts'
import { aboutField } from '../files/field-faults.ts'
import { formatPath, parsePath } from '../files/sandbox/paths.ts'
import { uploadTarget } from '../files/uploads/batch.ts'
import type { Checksum } from '../files/uploads/checked-bytes.ts'
import type { PartialState } from '../files/uploads/partial-uploads.ts'
import { causeOf, type LinkDoor } from './link-door.ts'
import { EXPIRES_AFTER_MS, type TusUploads } from './tus-uploads.ts'
import type { UploadQuery } from './uploads.ts'

const ALGORITHMS = ['sha1', 'sha256', 'sha512', 'md5']
const EXTENSIONS = ['creation', 'creation-with-upload', 'checksum', 'expiration', 'termination']
const VERSION = '1.0.0'

const BRINGS_BYTES = new Set(['POST', 'PATCH'])

/** What @tus/server answers with a status of its own, in our codes. */
const CODES: Record<number, ErrorCode> = {
  404: 'not_found',
  409: 'upload_offset_conflict',
  410: 'not_found',
  413: 'too_large',
  415: 'unsupported_media_type',
}

export interface TusDeps {
  door: LinkDoor
  uploads: TusUploads
}

interface Call {
  opened: OpenedLink<'upload'>
  signal: AbortSignal
  request: FastifyRequest
  link: string
  id: string
}

export const isTus = ({ headers }: FastifyRequest) => headers['tus-resumable'] !== undefined

export async function acceptTus(
  deps: TusDeps,
  opened: OpenedLink<'upload'>,
  signal: AbortSignal,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { link, tusId } = request.params as { link: string; tusId?: string }
  reply.header('tus-resumable', VERSION)
  if (request.method !== 'OPTIONS' && request.headers['tus-resumable'] !== VERSION)
    throw fail('precondition_failed', {
      detail: `This service supports tus ${VERSION}.`,
      headers: { 'tus-version': VERSION },
    })
  const id = tusId ?? newId('upl')
  // First: a stranger's request must not end the one that is under way.
  if (tusId !== undefined) requireOwn(deps, opened, id)
  return await deps.uploads.alone(id, signal, async (alone) => {
    const call = { opened, signal: alone, request, link, id }
    const answer = async () => {
      if (tusId !== undefined) await finishIfWhole(deps, call)
      return await speak(deps, call, reply)
    }
    // Not before the older request of this upload is over: it may hold the turn that this one would wait for.
    return BRINGS_BYTES.has(request.method) ? await deps.door.inTurn(opened.serverId, alone, answer) : await answer()
  })
}

/** An upload goes on under any link that the same token has for the same server. */
function requireOwn({ uploads }: TusDeps, opened: OpenedLink, id: string): PartialState {
  const state = uploads.of(opened.serverId).find(id)
  if (!state || state.record.cause.tokenId !== opened.tokenId)
    throw fail('not_found', 'No such upload, or it has expired.')
  return state
}

/** Read anew: the request that went before may have brought the last byte, or deleted the upload. */
async function finishIfWhole(deps: TusDeps, { opened, id, request }: Call): Promise<void> {
  const { offset, record } = requireOwn(deps, opened, id)
  if (offset === record.sizeBytes && request.method !== 'DELETE') await deps.uploads.of(opened.serverId).finish(id)
}

async function speak(deps: TusDeps, call: Call, reply: FastifyReply): Promise<FastifyReply> {
  const { request, link, id, opened } = call
  let failure: unknown
  const server = new Server({
    path: '/',
    datastore: createStore(deps, call),
    locker: { newLock: () => ({ lock: async () => {}, unlock: async () => {} }) },
    maxSize: () => opened.detail.maxBytes,
    disableTerminationForFinishedUploads: true,
    namingFunction: () => id,
    getFileIdFromRequest: () => id,
    // Relative to the address that was asked for, so that it is right behind any proxy.
    generateUrl: () => (/\/(?:\?|$)/.test(request.url) ? id : `${link}/${id}`),
    onUploadFinish: async () => {
      await deps.uploads.of(opened.serverId).finish(id)
      return {}
    },
    onResponseError: (_request, error) => {
      failure = error
      return undefined
    },
  })
  const response = await server.handleWeb(
    new Request('http://agent/', { method: request.method, headers: headersOf(request) }),
  )
  if (response.status >= 400) throw toFailure(failure, response.status, await response.text())
  for (const [name, value] of response.headers) if (!name.startsWith('access-control-')) reply.header(name, value)
  if (request.method === 'OPTIONS') reply.header('tus-checksum-algorithm', ALGORITHMS.join(','))
  return reply.code(response.status).send()
}

function headersOf({ headers }: FastifyRequest): Headers {
  return new Headers(
    Object.entries(headers).flatMap(([name, value]): [string, string][] =>
      value === undefined ? [] : [[name, String(value)]],
    ),
  )
}

function toFailure(error: unknown, status: number, text: string): Failure | unknown {
  if (isFailure(error)) return error
  if (error instanceof Error && !('status_code' in error)) return error
  const detail = text.trim().replace(/([^.])$/, '$1.')
  return fail(CODES[status] ?? 'invalid_request', detail, error)
}

/** One request's view of the uploads of its server. */
function createStore({ uploads, door }: TusDeps, { opened, signal, request, id }: Call): DataStore {
  const partials = uploads.of(opened.serverId)
  return Object.assign(new DataStore(), {
    extensions: EXTENSIONS,
    getExpiration: () => EXPIRES_AFTER_MS,

    async create(upload: Upload): Promise<Upload> {
      checksumOf(request)
      const metadata = upload.metadata ?? {}
      requireUtf8(request)
      const { directory, path, overwrite } = targetOf(metadata, request.query as UploadQuery)
      const record = {
        version: 1 as const,
        id,
        uploadId: opened.detail.uploadId,
        cause: causeOf(opened, request),
        directory,
        path,
        overwrite,
        sizeBytes: upload.size ?? 0,
        metadata,
        isFinished: false,
      }
      await partials.create(record, opened.detail.maxBytes)
      upload.creation_date = new Date().toISOString()
      return upload
    },

    async write(unused: NodeJS.ReadableStream): Promise<number> {
      unused.resume()
      const onBytes = () => door.renew(opened.detail.uploadId)
      return await partials.append(id, bodyOf(request.raw, { signal, onBytes }), {
        signal,
        checksum: checksumOf(request),
      })
    },

    async getUpload(): Promise<Upload> {
      const state = partials.find(id)
      if (!state) throw fail('not_found', 'No such upload, or it has expired.')
      return describe(state)
    },

    async remove(): Promise<void> {
      partials.remove(id)
    },
  })
}

/** @tus/server counts an upload's time from its creation; here it is counted from its last byte. */
function describe({ record, offset, lastByteAt }: PartialState): Upload {
  return new Upload({
    id: record.id,
    size: record.sizeBytes,
    offset,
    metadata: record.metadata,
    creation_date: new Date(lastByteAt).toISOString(),
  })
}

/** @tus/server replaces what is not UTF-8, so that two names could become one. */
function requireUtf8({ headers }: FastifyRequest): void {
  for (const pair of String(headers['upload-metadata'] ?? '').split(',')) {
    const [key = '', value = ''] = pair.trim().split(' ')
    if (PATH_KEYS.has(key) && !isUtf8(Buffer.from(value, 'base64')))
      throw fail('invalid_path', 'The name of a file is not valid UTF-8.')
  }
}

const PATH_KEYS = new Set(['directory', 'relativePath', 'filename', 'name'])

function targetOf(metadata: Record<string, string | null>, query: UploadQuery) {
  const directory = aboutField('/directory', () => parsePath(metadata.directory ?? query.directory ?? '/'))
  // Clients that send a folder put the place within it into `relativePath`, and "null" there for a single file.
  const relativePath = metadata.relativePath === 'null' ? undefined : metadata.relativePath
  const names = { relativePath, filename: metadata.filename, name: metadata.name }
  const [field, name] = Object.entries(names).find(([, value]) => value) ?? []
  if (!name) throw fail('invalid_request', 'Upload-Metadata must hold a filename.')
  const overwrite = metadata.overwrite ?? String(query.overwrite ?? true)
  if (overwrite !== 'true' && overwrite !== 'false')
    throw fail('invalid_request', 'overwrite in Upload-Metadata is true or false.')
  return {
    directory: formatPath(directory),
    path: formatPath(aboutField(`/${field}`, () => uploadTarget(directory, name))),
    overwrite: overwrite === 'true',
  }
}

function checksumOf({ headers }: FastifyRequest): Checksum | undefined {
  const header = headers['upload-checksum']
  if (header === undefined) return undefined
  const [, algorithm = '', base64 = ''] = /^(\S+) (\S+)$/.exec(String(header)) ?? []
  if (!ALGORITHMS.includes(algorithm))
    throw fail('invalid_request', `Upload-Checksum names one of ${ALGORITHMS.join(', ')} and a checksum in Base64.`)
  return { algorithm, base64 }
}
