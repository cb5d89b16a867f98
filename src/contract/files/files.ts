import { operation } from '../operation.ts'
import { BOUNDS } from '../operation-bounds.ts'
import { Closed, Directory, OneOf, Page, PageQuery, Path, Type } from '../schema.ts'
import {
  ArchiveFormat,
  changeErrors,
  DownloadLocation,
  Entries,
  EntryName,
  entryExample,
  expiresAt,
  FileEntry,
  folderExample,
  link,
  Overwrite,
  PathQuery,
  params,
  pathErrors,
  spaceErrors,
  tag,
  UploadLocation,
} from './file-schemas.ts'
import {
  emptyTrash,
  listTrash,
  packFiles,
  pullFile,
  readUsage,
  restoreTrash,
  searchFiles,
  unpackFile,
} from './file-work.ts'

export * from './file-schemas.ts'
export * from './file-work.ts'

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
  bound: BOUNDS.paths,
  params,
  body: Closed({
    root: Directory,
    files: Entries,
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
  bound: BOUNDS.path,
  params,
  body: Closed({ name: EntryName, path: Directory }),
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
  bound: BOUNDS.tree,
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
  bound: BOUNDS.rows,
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
  bound: BOUNDS.directory,
  params,
  query: Closed({
    ...PageQuery,
    path: Directory,
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
  bound: BOUNDS.bytes,
  params,
  query: PathQuery,
  answers: {
    200: { description: 'The whole file', bytes: true },
    206: { description: 'The range that was asked for', bytes: true },
    304: { description: 'It is what `If-None-Match` names' },
  },
  errors: [...pathErrors, 'precondition_failed', 'range_not_satisfiable'],
})

export const writeContent = operation({
  id: 'writeContent',
  method: 'PUT',
  path: '/files/{serverId}/content',
  tag,
  summary: 'Write a file',
  description:
    'The body is the bytes. The file is replaced in one rename, and its former version goes to the trash. With `If-Match` it is ' +
    'replaced only if it is still the one that was read, with `If-None-Match: *` it is only created.',
  scope: 'files:write',
  bound: BOUNDS.bytes,
  params,
  query: Closed({ path: Path, overwrite: Type.Optional(Type.Boolean({ default: true })) }),
  headers: {
    'If-Match':
      'The `ETag` of the file as it was read, or `*` for any: `precondition_failed` if it has another, or is gone',
    'If-Unmodified-Since':
      'A date: `precondition_failed` if the file was changed in a later second. Without `If-Match` only, which tells more',
    'If-None-Match': '`*`: `precondition_failed` if anything has the name. An `ETag`: if the file has it',
  },
  rawBody: {
    types: ['application/octet-stream'],
    description: 'The bytes. None make an empty file',
    example: 'motd=Welcome\n',
  },
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
  description:
    'Every move is checked, and has room for the directories that are missing, before any is made. If one fails all the same, ' +
    'since something came in its way meanwhile or because of a move before it, those before it are taken back, with the ' +
    'directories that were made for them. What cannot be taken back, as its old name is taken by then, is in the activity.',
  scope: 'files:write',
  bound: BOUNDS.paths,
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
  errors: [...changeErrors, ...spaceErrors, 'already_exists', 'idempotency_conflict'],
})

export const setFileMode = operation({
  id: 'setFileMode',
  method: 'POST',
  path: '/files/{serverId}/mode',
  tag,
  summary: 'Change the mode of files and folders',
  description:
    'Every entry is checked before any is changed. A folder is changed itself, not what it holds. The owner keeps read and write ' +
    'of a file, and read, write and execute of a folder. A symlink is refused, never followed.',
  scope: 'files:write',
  bound: BOUNDS.paths,
  params,
  body: Closed({
    root: Directory,
    files: Entries,
    mode: Type.String({
      pattern: '^0?[0-7]{3}$',
      description: 'Three octal digits, with or without a 0 in front: the nine permission bits',
    }),
  }),
  bodyExample: { root: '/', files: ['start.sh'], mode: '0755' },
  answers: {
    200: {
      description: 'The entries as they are now',
      schema: Type.Object({ data: Type.Array(FileEntry) }),
      example: {
        data: [{ ...entryExample, name: 'start.sh', path: '/start.sh', mode: '0755', mime: 'application/x-sh' }],
      },
    },
  },
  errors: [...changeErrors, 'disk_full', 'idempotency_conflict'],
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
  bound: BOUNDS.path,
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

export const FILE_OPERATIONS = [
  deleteFiles,
  createFolder,
  copyFile,
  requestUpload,
  listFiles,
  readContent,
  writeContent,
  moveFiles,
  setFileMode,
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
