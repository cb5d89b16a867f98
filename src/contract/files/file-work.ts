// The trash, searching, and the work on files that takes its time.

import { operation } from '../operation.ts'
import { BOUNDS } from '../operation-bounds.ts'
import {
  BLANK_IS_ABSENT,
  Bytes,
  Closed,
  Directory,
  Id,
  Page,
  PageQuery,
  Path,
  ServerParams,
  TEXT,
  Type,
} from '../schema.ts'
import {
  ArchiveFormat,
  changeErrors,
  DiskUsage,
  Entries,
  EntryName,
  entryExample,
  FileEntry,
  job,
  Overwrite,
  params,
  pathErrors,
  SearchMatch,
  spaceErrors,
  TrashItem,
  tag,
  trashExample,
} from './file-schemas.ts'

export const packFiles = operation({
  id: 'packFiles',
  method: 'POST',
  path: '/files/{serverId}/pack',
  tag,
  summary: 'Pack files into an archive',
  scope: 'files:write',
  bound: BOUNDS.job,
  params,
  body: Closed({
    root: Directory,
    files: Entries,
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
  bound: BOUNDS.job,
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
  bound: BOUNDS.job,
  params,
  body: Closed({
    url: Type.String({ minLength: 1, maxLength: 2048, pattern: TEXT }),
    directory: Type.Optional(Path),
    name: Type.Optional(Type.String({ ...EntryName, [BLANK_IS_ABSENT]: true })),
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
  bound: BOUNDS.search,
  params,
  query: Closed({
    q: Type.String({ minLength: 1, maxLength: 191, pattern: TEXT }),
    path: Directory,
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
  bound: BOUNDS.trash,
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
  bound: BOUNDS.trash,
  params: Closed({ ...ServerParams.properties, trashId: Id }),
  answers: { 200: { description: 'The entry, back in its place', schema: FileEntry, example: entryExample } },
  errors: [...pathErrors, ...spaceErrors, 'server_busy', 'idempotency_conflict'],
})

export const emptyTrash = operation({
  id: 'emptyTrash',
  method: 'DELETE',
  path: '/files/{serverId}/trash',
  tag,
  summary: 'Empty the trash now',
  scope: 'files:write',
  bound: BOUNDS.tree,
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
  bound: BOUNDS.tree,
  params,
  answers: {
    200: {
      description: 'Files and trash together, and the quota',
      schema: DiskUsage,
      example: {
        ...{ usedBytes: 1_932_735_283, trashBytes: 12_288, reservedBytes: 0, quotaBytes: 21_474_836_480 },
        ...{ usedEntries: 48_210, trashEntries: 3, reservedEntries: 0, maxEntries: 1_000_000 },
      },
    },
  },
  errors: ['agent_unreachable'],
})
