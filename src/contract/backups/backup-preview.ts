// What a backup would hold, counted before one is made.

import { operation } from '../operation.ts'
import { BOUNDS } from '../operation-bounds.ts'
import { Bytes, Closed, ServerParams, type Static, Type } from '../schema.ts'
import { Ignored } from './backups.ts'

const FileTally = Type.Object({ fileCount: Type.Integer({ minimum: 0 }), sizeBytes: Bytes })

export const BackupPreview = Type.Object({
  ignored: Type.String({ description: 'The patterns that would be used' }),
  kept: FileTally,
  leftOut: FileTally,
  isComplete: Type.Boolean({
    description: 'False where counting was cut short after a few seconds: there is at least this much of both',
  }),
})
export type BackupPreview = Static<typeof BackupPreview>

export const previewBackup = operation({
  id: 'previewBackup',
  method: 'POST',
  path: '/backups/{serverId}/preview',
  tag: 'Backups',
  summary: 'Count what a backup would hold and what its patterns leave out',
  description:
    'Nothing is made or changed: the files are counted as they are now, without reading them. Patterns count as in `POST /backups/{serverId}`.',
  scope: 'backups:read',
  bound: BOUNDS.preview,
  params: ServerParams,
  body: Closed({ ignored: Type.Optional(Ignored) }),
  bodyExample: { ignored: 'logs/\n*.tmp' },
  answers: {
    200: {
      description: 'The count',
      schema: BackupPreview,
      example: {
        ignored: 'logs/\n*.tmp',
        kept: { fileCount: 5030, sizeBytes: 1_932_735_283 },
        leftOut: { fileCount: 212, sizeBytes: 48_234_496 },
        isComplete: true,
      },
    },
  },
  errors: ['too_large', 'unsupported_media_type', 'idempotency_conflict', 'agent_unreachable'],
})
