// What an admin allows one server: a new limit is a field here, a column, and a check where it is enforced.
import { DEFAULT_ENTRIES_MAX } from './fixed-limits.ts'
import { Bytes, Closed, Nullable, type Static, Type } from './schema.ts'

const Count = Type.Integer({ minimum: 0, maximum: 1_000_000 })
const Entries = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: `Files, directories and symlinks, those in the trash included. ${DEFAULT_ENTRIES_MAX} by default`,
})

export const Limits = Type.Object(
  { diskBytes: Nullable(Bytes), entries: Nullable(Entries), backups: Nullable(Count), subdomains: Nullable(Count) },
  { description: 'null is no limit' },
)
export type Limits = Static<typeof Limits>

export const NewLimits = Closed({
  diskBytes: Type.Optional(Nullable(Bytes)),
  entries: Type.Optional(Nullable(Entries)),
  backups: Type.Optional(Nullable(Count)),
  subdomains: Type.Optional(Nullable(Count)),
})
