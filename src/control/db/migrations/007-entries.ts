import { DEFAULT_ENTRIES_MAX } from '../../../contract/fixed-limits.ts'
import type { Migration } from '../migrate.ts'

export const entries: Migration = {
  name: '007-entries',
  // Servers that are there already get the limit that new ones have.
  statements: [`alter table servers add column limit_entries bigint default ${DEFAULT_ENTRIES_MAX}`],
}
