// How much room there is on the machine, beside what each server may use of it.
import { operation } from './operation.ts'
import { BOUNDS } from './operation-bounds.ts'
import { Bytes, Closed, OneOf, Page, PageQuery, type Static, Type } from './schema.ts'

export const DISK_FOLDERS = ['data', 'servers', 'backups'] as const

export const Disk = Type.Object({
  folders: Type.Array(OneOf(DISK_FOLDERS), {
    description: 'What lies on it: the data directory itself, the files of servers, the block store of backups',
  }),
  totalBytes: Bytes,
  freeBytes: Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'What the service can still write; the system may keep more for itself',
  }),
})
export type Disk = Static<typeof Disk>

export const readDisks = operation({
  id: 'readDisks',
  method: 'GET',
  path: '/disks',
  tag: 'Machine',
  summary: 'Read how much room is left on the disks',
  description: 'Each disk once, with what of the service lies on it. Needs a token with `*` for all servers.',
  scope: '*',
  bound: BOUNDS.rows,
  query: Closed({ ...PageQuery }),
  answers: {
    200: {
      description: 'A page of disks',
      schema: Page(Disk),
      example: {
        data: [{ folders: ['data', 'servers', 'backups'], totalBytes: 512_000_000_000, freeBytes: 128_000_000_000 }],
        nextCursor: null,
      },
    },
  },
  errors: [],
})
