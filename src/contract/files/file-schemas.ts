// What the operations on files are said with.
import { Job, jobExample } from '../jobs.ts'
import { Bytes, Closed, Id, Nullable, OneOf, Path, ServerParams, type Static, Timestamp, Type } from '../schema.ts'

export const EntryName = Type.String({ minLength: 1, maxLength: 255 })
export const PathQuery = Closed({ path: Path })
/** Names or paths, relative to a directory, and told back as the caller wrote them. */
export const Entries = Type.Array(Type.String({ maxLength: 4096 }), {
  minItems: 1,
  maxItems: 1000,
  description: 'Names or paths relative to `root`; one with a slash in front is relative to it too',
})
export const Overwrite = Type.Optional(
  Type.Boolean({ description: 'What is replaced goes to the trash. False by default' }),
)

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
  usedBytes: Type.Integer({
    minimum: 0,
    description: 'Files, directories and trash together: what the quota is compared with',
  }),
  trashBytes: Bytes,
  reservedBytes: Type.Integer({ minimum: 0, description: 'Taken by transfers under way' }),
  quotaBytes: Nullable(Bytes),
  usedEntries: Type.Integer({
    minimum: 0,
    description: 'Files, directories and symlinks, those in the trash included',
  }),
  trashEntries: Type.Integer({ minimum: 0 }),
  reservedEntries: Type.Integer({ minimum: 0, description: 'Taken by transfers under way' }),
  maxEntries: Nullable(Type.Integer({ minimum: 0 })),
})
export type DiskUsage = Static<typeof DiskUsage>

export const SearchMatch = Type.Object({
  path: Type.String(),
  kind: FileKind,
  lineNumber: Nullable(Type.Integer()),
  line: Nullable(Type.String()),
})
export type SearchMatch = Static<typeof SearchMatch>

export const entryExample = {
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
export const folderExample = {
  ...entryExample,
  name: 'mods',
  path: '/mods',
  kind: 'directory',
  mode: '0755',
  mime: null,
  isText: false,
}
export const trashExample = {
  id: 'trs_01k9zq6m3t8v5w2x7y4c1b6d9e',
  path: '/world/level.dat',
  kind: 'file',
  reason: 'deleted',
  deletedAt: '2026-11-15T00:00:00.000Z',
  expiresAt: '2026-11-16T00:00:00.000Z',
}
export const link = 'https://keeper.example.org/v1/game/uploads/eyJhbGciOiJIUzI1NiJ9.e30.c2ln'
export const expiresAt = '2026-11-15T00:15:00.000Z'

export const tag = 'Files'
export const params = ServerParams
export const pathErrors = ['invalid_path', 'agent_unreachable'] as const
export const changeErrors = [...pathErrors, 'server_busy', 'too_large', 'unsupported_media_type'] as const
export const spaceErrors = ['quota_exceeded', 'disk_full'] as const
export const job = {
  202: {
    description: 'The job; read it at `/servers/{serverId}/jobs/{jobId}`',
    schema: Job,
    example: { ...jobExample, kind: 'unpack' },
  },
}
