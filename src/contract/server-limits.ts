// What an admin allows one server: a new limit is a field here, a column, and a check where it is enforced.
import { DEFAULT_ENTRIES_MAX } from './fixed-limits.ts'
import { Bytes, Closed, Nullable, type Static, Type } from './schema.ts'

const Count = Type.Integer({ minimum: 0, maximum: 1_000_000 })
const Memory = Type.Integer({
  minimum: 16 * 1024 * 1024,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'Of the game, all its processes together',
})
const Cpu = Type.Integer({ minimum: 1, maximum: 100_000, description: 'Of one core: 200 is two of them' })
const Processes = Type.Integer({ minimum: 8, maximum: 1_000_000, description: 'Processes and threads of the game' })
const Entries = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: `Files, directories and symlinks, those in the trash included. ${DEFAULT_ENTRIES_MAX} by default`,
})

export const Limits = Type.Object(
  {
    diskBytes: Nullable(Bytes),
    entries: Nullable(Entries),
    backups: Nullable(Count),
    subdomains: Nullable(Count),
    memoryBytes: Nullable(Memory),
    cpuPercent: Nullable(Cpu),
    processes: Nullable(Processes),
  },
  { description: 'null is no limit' },
)
export type Limits = Static<typeof Limits>

export const NewLimits = Closed({
  diskBytes: Type.Optional(Nullable(Bytes)),
  entries: Type.Optional(Nullable(Entries)),
  backups: Type.Optional(Nullable(Count)),
  subdomains: Type.Optional(Nullable(Count)),
  memoryBytes: Type.Optional(Nullable(Memory)),
  cpuPercent: Type.Optional(Nullable(Cpu)),
  processes: Type.Optional(Nullable(Processes)),
})
