import type { PartialRecord } from './partial-records.ts'

export function recordOf(id: string, more: Partial<PartialRecord> = {}): PartialRecord {
  return {
    version: 1,
    id,
    uploadId: 'upl',
    cause: { tokenId: 'tok', requestId: 'req', ip: null, userAgent: null },
    directory: '/',
    path: `/${id}`,
    overwrite: true,
    sizeBytes: 3,
    metadata: {},
    isFinished: false,
    ...more,
  }
}
