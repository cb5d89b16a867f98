// What can be asked of the addresses that `requestUpload`, `requestDownload` and `requestBackupDownload` answer. They take
// no token: the address is one, for one purpose, for one server, for a short time.

import type { ErrorCode } from '../errors.ts'
import { BOUNDS, type Bound } from '../operation-bounds.ts'
import { Closed, Path, type TSchema, Type } from '../schema.ts'
import { entryExample, FileEntry } from './file-schemas.ts'

/** Also where an upload by tus goes on: clients may keep the query of the address that they were given. */
export const UPLOAD_QUERY = Closed({
  directory: Type.Optional(Path),
  overwrite: Type.Optional(Type.Boolean()),
  skipIdentical: Type.Optional(
    Type.Boolean({ description: 'Of a form: leaves a file as it is that is there already with the same bytes' }),
  ),
})

export interface LinkAnswer {
  description: string
  schema?: TSchema
  example?: unknown
  bytes?: boolean
  headers?: Readonly<Record<string, string>>
}

export interface LinkOperation {
  id: string
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'HEAD' | 'OPTIONS'
  /** Below BASE_PATH; `link` is the last part of the address that was answered. */
  path: string
  tag: string
  summary: string
  description?: string
  query?: TSchema
  /** Request headers with what they hold; one that ends in `*` has to be there. */
  headers?: Readonly<Record<string, string>>
  /** By media type. */
  body?: Readonly<Record<string, { schema: Record<string, unknown>; example: unknown }>>
  answers: Readonly<Record<number, LinkAnswer>>
  errors: readonly ErrorCode[]
  /** Where it is more than chunks of bytes. */
  bound?: Bound
}

const BINARY = { type: 'string', format: 'binary' }
const BYTES = { schema: BINARY, example: 'motd=Welcome\n' }
const RESUMABLE = { 'Tus-Resumable*': '`1.0.0`' }
const TUS_ANSWER = { 'Tus-Resumable': '`1.0.0`' }
const OFFSET = { ...TUS_ANSWER, 'Upload-Offset': 'How many bytes have arrived' }

const shared = [
  'invalid_request',
  'not_found',
  'method_not_allowed',
  'rate_limited',
  'headers_too_large',
  'internal',
  'not_ready',
  'disk_read_only',
  'disk_failing',
  'disk_full',
] as const satisfies readonly ErrorCode[]
const uploadErrors = [
  ...shared,
  'invalid_path',
  'already_exists',
  'server_busy',
  'server_deleted',
  'restore_unfinished',
  'quota_exceeded',
  'too_large',
  'unsupported_media_type',
  'precondition_failed',
  'upload_offset_conflict',
  'checksum_mismatch',
] as const satisfies readonly ErrorCode[]

const upload = { tag: 'Files', query: UPLOAD_QUERY, errors: uploadErrors } as const
const one = '/uploads/{link}/{tusId}'
const download = {
  answers: {
    200: { description: 'All of it', bytes: true },
    206: { description: 'The range that was asked for', bytes: true },
    304: { description: 'It is what `If-None-Match` names' },
  },
  errors: [
    ...shared,
    'invalid_path',
    'server_deleted',
    'agent_unreachable',
    'precondition_failed',
    'range_not_satisfiable',
  ],
} as const

export const LINK_OPERATIONS: readonly LinkOperation[] = [
  {
    ...upload,
    id: 'uploadFiles',
    bound: BOUNDS.form,
    method: 'POST',
    path: '/uploads/{link}',
    summary: 'Upload files by a form, or begin an upload by tus',
    description:
      'A form has the repeatable field `files`; all of them arrive, or none. With `Tus-Resumable` it is the creation of tus 1.0, ' +
      'which may bring the first bytes.',
    headers: {
      'Tus-Resumable': '`1.0.0` to begin an upload by tus',
      'Upload-Length': 'For tus: the size in bytes',
      'Upload-Metadata':
        'For tus: `filename`, `relativePath`, `directory` and `overwrite`, each with its value in Base64',
      'Upload-Checksum': 'For tus: the name of an algorithm and the checksum of this body in Base64',
    },
    body: {
      'multipart/form-data': {
        schema: { type: 'object', properties: { files: { type: 'array', items: BINARY } }, required: ['files'] },
        example: { files: [BYTES.example] },
      },
      'application/offset+octet-stream': BYTES,
    },
    answers: {
      200: {
        description: 'The files of the form, in their places',
        schema: Type.Object({ data: Type.Array(FileEntry) }),
        example: { data: [entryExample] },
      },
      201: {
        description: 'The upload has begun',
        headers: { ...TUS_ANSWER, Location: 'Where it goes on', 'Upload-Expires': 'Until when, after its last byte' },
      },
    },
  },
  {
    ...upload,
    id: 'describeUploads',
    method: 'OPTIONS',
    path: '/uploads/{link}',
    summary: 'See which parts of tus are spoken',
    answers: {
      204: {
        description: 'The version, the extensions and the algorithms',
        headers: {
          Allow: 'The methods of the path',
          'Tus-Version': '`1.0.0`',
          'Tus-Extension': 'The extensions',
          'Tus-Max-Size': 'The most bytes',
        },
      },
    },
  },
  {
    ...upload,
    id: 'readUpload',
    method: 'HEAD',
    path: one,
    summary: 'See how much of an upload has arrived',
    headers: RESUMABLE,
    answers: { 200: { description: 'Where it goes on', headers: { ...OFFSET, 'Upload-Length': 'The size in bytes' } } },
  },
  {
    ...upload,
    id: 'continueUpload',
    method: 'PATCH',
    path: one,
    summary: 'Send more of an upload',
    headers: {
      ...RESUMABLE,
      'Upload-Offset*': 'Where this body begins',
      'Upload-Checksum': 'The name of an algorithm and the checksum of this body in Base64',
    },
    body: { 'application/offset+octet-stream': BYTES },
    answers: { 204: { description: 'Taken. With the last byte the file is in its place', headers: OFFSET } },
  },
  {
    ...upload,
    id: 'cancelUpload',
    method: 'DELETE',
    path: one,
    summary: 'Take back an upload that has not ended',
    headers: RESUMABLE,
    answers: { 204: { description: 'What has arrived is gone', headers: TUS_ANSWER } },
  },
  {
    ...download,
    id: 'download',
    method: 'GET',
    path: '/downloads/{link}',
    tag: 'Files',
    summary: 'Download a file, or a folder as an archive',
  },
  {
    ...download,
    id: 'downloadBackupByLink',
    method: 'GET',
    path: '/backup-downloads/{link}',
    tag: 'Backups',
    summary: 'Download a backup',
    errors: [...download.errors, 'backup_not_ready', 'backup_damaged', 'offsite_unreachable'],
  },
]
