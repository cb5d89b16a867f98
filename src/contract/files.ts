import { Job, jobExample } from './jobs.ts'
import { operation } from './operation.ts'
import {
  Bytes,
  Closed,
  Id,
  Nullable,
  OneOf,
  Page,
  PageQuery,
  ServerParams,
  type Static,
  TEXT,
  Timestamp,
  Type,
} from './schema.ts'

/** What may be in a path is decided by the agent, which knows the disk; here only its length is held in bounds. */
const Path = Type.String({ minLength: 1, maxLength: 4096 })
const EntryName = Type.String({ minLength: 1, maxLength: 255 })
const PathQuery = Closed({ path: Path })
const Overwrite = Type.Optional(Type.Boolean({ description: 'What is replaced goes to the trash. False unless told' }))

export const FileKind = OneOf(['file', 'directory', 'symlink', 'other'])
export type FileKind = Static<typeof FileKind>

export const FileEntry = Type.Object({
  name: Type.String(),
  path: Type.String(),
  kind: FileKind,
  sizeBytes: Bytes,
  mode: Type.String({ description: 'Four octal digits' }),
  modifiedAt: Timestamp,
  mime: Nullable(Type.String({ description: 'A guess from the name' })),
  isText: Type.Boolean(),
  symlinkTarget: Nullable(Type.String({ description: 'What a symlink says, which may lead nowhere' })),
})
export type FileEntry = Static<typeof FileEntry>

export const TrashItem = Type.Object({
  id: Id,
  path: Type.String(),
  kind: FileKind,
  reason: OneOf(['deleted', 'replaced'], { description: '`replaced`: an older version of a file that is still there' }),
  deletedAt: Timestamp,
  expiresAt: Timestamp,
})
export type TrashItem = Static<typeof TrashItem>

export const UploadLocation = Type.Object({
  id: Id,
  url: Type.String({ format: 'uri' }),
  expiresAt: Timestamp,
  maxBytes: Nullable(Bytes),
  protocols: Type.Array(OneOf(['multipart', 'tus'])),
})
export type UploadLocation = Static<typeof UploadLocation>

export const DownloadLocation = Type.Object({ url: Type.String({ format: 'uri' }), expiresAt: Timestamp })
export type DownloadLocation = Static<typeof DownloadLocation>

export const ARCHIVE_FORMATS = ['zip', 'tar', 'tar.gz', 'tar.zst'] as const
export const ArchiveFormat = OneOf(ARCHIVE_FORMATS)
export type ArchiveFormat = Static<typeof ArchiveFormat>

export const DiskUsage = Type.Object({
  usedBytes: Type.Integer({ minimum: 0, description: 'Files and trash together: what the quota is compared with' }),
  trashBytes: Bytes,
  reservedBytes: Type.Integer({ minimum: 0, description: 'Taken by transfers under way' }),
  quotaBytes: Nullable(Bytes),
})
export type DiskUsage = Static<typeof DiskUsage>

export const SearchMatch = Type.Object({
  path: Type.String(),
  kind: FileKind,
  lineNumber: Nullable(Type.Integer()),
  line: Nullable(Type.String()),
})
export type SearchMatch = Static<typeof SearchMatch>

const entryExample = {
  name: 'server.properties',
  path: '/server.properties',
  kind: 'file',
  sizeBytes: 1042,
  mode: '0644',
  modifiedAt: '2026-11-15T00:00:00.000Z',
  mime: 'text/plain',
  isText: true,
  symlinkTarget: null,
}
const folderExample = {
  ...entryExample,
  name: 'mods',
  path: '/mods',
  kind: 'directory',
  mode: '0755',
  mime: null,
  isText: false,
}
const trashExample = {
  id: 'trs_01k9zq6m3t8v5w2x7y4c1b6d9e',
  path: '/world/level.dat',
  kind: 'file',
  reason: 'deleted',
  deletedAt: '2026-11-15T00:00:00.000Z',
  expiresAt: '2026-11-16T00:00:00.000Z',
}
const link = 'https://keeper.example.org/v1/game/uploads/eyJhbGciOiJIUzI1NiJ9.e30.c2ln'
const expiresAt = '2026-11-15T00:15:00.000Z'

const tag = 'Files'
const params = ServerParams
const pathErrors = ['invalid_path', 'agent_unreachable'] as const
const changeErrors = [...pathErrors, 'server_busy', 'too_large', 'unsupported_media_type'] as const
const spaceErrors = ['quota_exceeded', 'disk_full'] as const
const job = {
  202: {
    description: 'The job; read it at `/servers/{serverId}/jobs/{jobId}`',
    schema: Job,
    example: { ...jobExample, kind: 'unpack' },
  },
}

export const deleteFiles = operation({
  id: 'deleteFiles',
  method: 'DELETE',
  path: '/files/{serverId}',
  tag,
  summary: 'Delete files and folders',
  description:
    'Every entry is checked before anything is touched. What is deleted goes to the trash in one rename each, so this ' +
    'answers at once for a tree of any size, and can be undone until the trash is emptied. A symlink is removed, never followed.',
  scope: 'files:write',
  params,
  body: Closed({
    root: Type.Optional(Type.String({ minLength: 1, maxLength: 4096, default: '/' })),
    files: Type.Array(Type.String({ maxLength: 4096 }), { minItems: 1, maxItems: 1000 }),
  }),
  bodyExample: { root: '/world', files: ['region/r.0.0.mca', 'session.lock'] },
  answers: {
    200: {
      description: 'What is gone, and what was not there',
      schema: Type.Object({ deleted: Type.Array(Type.String()), missing: Type.Array(Type.String()) }),
      example: { deleted: ['region/r.0.0.mca'], missing: ['session.lock'] },
    },
  },
  errors: [...changeErrors, 'disk_full'],
})

export const createFolder = operation({
  id: 'createFolder',
  method: 'POST',
  path: '/files/{serverId}/folder',
  tag,
  summary: 'Create a folder',
  description: 'Missing parents are made.',
  scope: 'files:write',
  params,
  body: Closed({ name: EntryName, path: Type.Optional(Type.String({ minLength: 1, maxLength: 4096, default: '/' })) }),
  bodyExample: { name: 'mods', path: '/' },
  answers: {
    201: { description: 'The new folder', schema: FileEntry, example: folderExample },
    200: { description: 'The folder, which was there already', schema: FileEntry, example: folderExample },
  },
  errors: [...changeErrors, ...spaceErrors, 'already_exists', 'idempotency_conflict'],
})

export const copyFile = operation({
  id: 'copyFile',
  method: 'POST',
  path: '/files/{serverId}/copy',
  tag,
  summary: 'Copy a file or a folder',
  description:
    'The copy lies beside the original: `a.txt` gives `a copy.txt`, then `a copy 2.txt`. It is not visible until it is complete.',
  scope: 'files:write',
  params,
  body: Closed({ location: Path }),
  bodyExample: { location: '/world/level.dat' },
  answers: {
    201: {
      description: 'The copy',
      schema: FileEntry,
      example: { ...entryExample, name: 'server copy.properties', path: '/server copy.properties' },
    },
  },
  errors: [...changeErrors, ...spaceErrors, 'idempotency_conflict'],
})

export const requestUpload = operation({
  id: 'requestUpload',
  method: 'GET',
  path: '/files/{serverId}/upload',
  tag,
  summary: 'Get a place to upload to',
  description:
    'The address is for this server and for uploading only, for 15 minutes, renewed while bytes flow, and dead when the token ' +
    'is revoked. `POST` multipart with the repeatable field `files` (and `?directory=/mods`, `?overwrite=false`), or speak tus 1.0 to it.',
  scope: 'files:write',
  params,
  answers: {
    200: {
      description: 'Where and how to upload',
      schema: UploadLocation,
      example: {
        id: 'upl_01k9zq6m3t8v5w2x7y4c1b6d9e',
        url: link,
        expiresAt,
        maxBytes: 107_374_182_400,
        protocols: ['multipart', 'tus'],
      },
    },
  },
  errors: ['server_busy'],
})

export const listFiles = operation({
  id: 'listFiles',
  method: 'GET',
  path: '/files/{serverId}',
  tag,
  summary: 'List a directory',
  description: 'Directories first.',
  scope: 'files:read',
  params,
  query: Closed({
    ...PageQuery,
    path: Type.Optional(Type.String({ minLength: 1, maxLength: 4096, default: '/' })),
    sort: Type.Optional(OneOf(['name', 'size', 'time'], { default: 'name' })),
    order: Type.Optional(OneOf(['asc', 'desc'], { default: 'asc' })),
  }),
  answers: {
    200: {
      description: 'A page of entries',
      schema: Page(FileEntry),
      example: { data: [folderExample, entryExample], nextCursor: null },
    },
  },
  errors: pathErrors,
})

export const readContent = operation({
  id: 'readContent',
  method: 'GET',
  path: '/files/{serverId}/content',
  tag,
  summary: 'Read a file',
  description: 'The bytes, with `ETag`, `Last-Modified` and ranges.',
  scope: 'files:read',
  params,
  query: PathQuery,
  answers: {
    200: { description: 'The whole file', bytes: true },
    206: { description: 'The range that was asked for', bytes: true },
    304: { description: 'It is what `If-None-Match` names' },
  },
  errors: [...pathErrors, 'range_not_satisfiable'],
})

export const writeContent = operation({
  id: 'writeContent',
  method: 'PUT',
  path: '/files/{serverId}/content',
  tag,
  summary: 'Write a file',
  description:
    'The body is the bytes. The file is replaced in one rename, and its former version goes to the trash. With `If-Match` it is ' +
    'replaced only if it is still the one that was read.',
  scope: 'files:write',
  params,
  query: Closed({ path: Path, overwrite: Type.Optional(Type.Boolean({ default: true })) }),
  rawBody: 'application/octet-stream',
  answers: {
    201: { description: 'The new file', schema: FileEntry, example: entryExample },
    200: { description: 'The file, replaced', schema: FileEntry, example: entryExample },
  },
  errors: [...changeErrors, ...spaceErrors, 'already_exists', 'precondition_failed'],
})

export const moveFiles = operation({
  id: 'moveFiles',
  method: 'POST',
  path: '/files/{serverId}/move',
  tag,
  summary: 'Move or rename files and folders',
  description: 'Every move is checked before any is made.',
  scope: 'files:write',
  params,
  body: Closed({
    moves: Type.Array(Closed({ from: Path, to: Path }), { minItems: 1, maxItems: 1000 }),
    overwrite: Overwrite,
  }),
  bodyExample: { moves: [{ from: '/plugins/old.jar', to: '/plugins-off/old.jar' }] },
  answers: {
    200: {
      description: 'The entries in their new places',
      schema: Type.Object({ data: Type.Array(FileEntry) }),
      example: { data: [entryExample] },
    },
  },
  errors: [...changeErrors, 'already_exists', 'disk_full', 'idempotency_conflict'],
})

export const requestDownload = operation({
  id: 'requestDownload',
  method: 'GET',
  path: '/files/{serverId}/download',
  tag,
  summary: 'Get a link to download a file or a folder',
  description:
    'A file downloads as it is, with ranges, so that a broken download resumes. A folder streams as an archive.',
  scope: 'files:read',
  params,
  query: Closed({ path: Path, format: Type.Optional(ArchiveFormat) }),
  answers: {
    200: {
      description: 'The link',
      schema: DownloadLocation,
      example: { url: link.replace('uploads', 'downloads'), expiresAt },
    },
  },
  errors: pathErrors,
})

export const packFiles = operation({
  id: 'packFiles',
  method: 'POST',
  path: '/files/{serverId}/pack',
  tag,
  summary: 'Pack files into an archive',
  scope: 'files:write',
  params,
  body: Closed({
    root: Type.Optional(Type.String({ minLength: 1, maxLength: 4096, default: '/' })),
    files: Type.Array(Type.String({ maxLength: 4096 }), { minItems: 1, maxItems: 1000 }),
    format: Type.Optional(ArchiveFormat),
    target: Type.Optional(Path),
  }),
  bodyExample: { root: '/', files: ['world'], format: 'tar.zst', target: '/world.tar.zst' },
  answers: job,
  errors: [...changeErrors, ...spaceErrors, 'already_exists', 'idempotency_conflict'],
})

export const unpackFile = operation({
  id: 'unpackFile',
  method: 'POST',
  path: '/files/{serverId}/unpack',
  tag,
  summary: 'Unpack an archive',
  description:
    'zip, tar, tar.gz or tar.zst. Unpacked beside first; if anything about it is wrong, nothing is left of it.',
  scope: 'files:write',
  params,
  body: Closed({ path: Path, directory: Type.Optional(Path), overwrite: Overwrite }),
  bodyExample: { path: '/world.zip', directory: '/' },
  answers: job,
  errors: [...changeErrors, ...spaceErrors, 'invalid_archive', 'already_exists', 'idempotency_conflict'],
})

export const pullFile = operation({
  id: 'pullFile',
  method: 'POST',
  path: '/files/{serverId}/pull',
  tag,
  summary: 'Fetch a file from an address',
  description: 'http and https only, and never an address inside the network of the service.',
  scope: 'files:write',
  params,
  body: Closed({
    url: Type.String({ minLength: 1, maxLength: 2048, pattern: TEXT }),
    directory: Type.Optional(Path),
    name: Type.Optional(EntryName),
    overwrite: Overwrite,
  }),
  bodyExample: { url: 'https://example.org/mods/lighting.jar', directory: '/mods' },
  answers: job,
  errors: [...changeErrors, ...spaceErrors, 'invalid_url', 'already_exists', 'idempotency_conflict'],
})

export const searchFiles = operation({
  id: 'searchFiles',
  method: 'GET',
  path: '/files/{serverId}/search',
  tag,
  summary: 'Search for files by name and by content',
  scope: 'files:read',
  params,
  query: Closed({
    q: Type.String({ minLength: 1, maxLength: 191, pattern: TEXT }),
    path: Type.Optional(Type.String({ minLength: 1, maxLength: 4096, default: '/' })),
    content: Type.Optional(Type.Boolean({ default: false })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 50 })),
  }),
  answers: {
    200: {
      description: 'What was found; `isComplete` is false when there may be more',
      schema: Type.Object({ data: Type.Array(SearchMatch), isComplete: Type.Boolean() }),
      example: {
        data: [{ path: '/server.properties', kind: 'file', lineNumber: 12, line: 'level-name=world' }],
        isComplete: true,
      },
    },
  },
  errors: pathErrors,
})

export const listTrash = operation({
  id: 'listTrash',
  method: 'GET',
  path: '/files/{serverId}/trash',
  tag,
  summary: 'List what was deleted or replaced and can be had back',
  description: 'Newest first.',
  scope: 'files:read',
  params,
  query: Closed({ ...PageQuery }),
  answers: {
    200: {
      description: 'A page of items',
      schema: Page(TrashItem),
      example: { data: [trashExample], nextCursor: null },
    },
  },
  errors: ['agent_unreachable'],
})

export const restoreTrash = operation({
  id: 'restoreTrash',
  method: 'POST',
  path: '/files/{serverId}/trash/{trashId}/restore',
  tag,
  summary: 'Put something back from the trash',
  description: 'Where it was; under a free name when its own is taken again.',
  scope: 'files:write',
  params: Closed({ ...ServerParams.properties, trashId: Id }),
  answers: { 200: { description: 'The entry, back in its place', schema: FileEntry, example: entryExample } },
  errors: [...pathErrors, 'server_busy', 'disk_full', 'idempotency_conflict'],
})

export const emptyTrash = operation({
  id: 'emptyTrash',
  method: 'DELETE',
  path: '/files/{serverId}/trash',
  tag,
  summary: 'Empty the trash now',
  scope: 'files:write',
  params,
  answers: {
    200: {
      description: 'How much was freed',
      schema: Type.Object({ freedBytes: Bytes }),
      example: { freedBytes: 1_048_576 },
    },
  },
  errors: ['agent_unreachable', 'server_busy'],
})

export const readUsage = operation({
  id: 'readUsage',
  method: 'GET',
  path: '/files/{serverId}/usage',
  tag,
  summary: 'Read how much disk a server uses',
  scope: 'files:read',
  params,
  answers: {
    200: {
      description: 'Files and trash together, and the quota',
      schema: DiskUsage,
      example: { usedBytes: 1_932_735_283, trashBytes: 4096, reservedBytes: 0, quotaBytes: 21_474_836_480 },
    },
  },
  errors: ['agent_unreachable'],
})

export const FILE_OPERATIONS = [
  deleteFiles,
  createFolder,
  copyFile,
  requestUpload,
  listFiles,
  readContent,
  writeContent,
  moveFiles,
  requestDownload,
  packFiles,
  unpackFile,
  pullFile,
  searchFiles,
  listTrash,
  restoreTrash,
  emptyTrash,
  readUsage,
] as const
