import { msg } from '@lingui/core/macro'
import type { Right } from './rights.ts'

export const RIGHT_NAMES = {
  look: msg`Look`,
  console: msg`Play the console`,
  files: msg`Manage files`,
  everything: msg`Everything`,
} as const satisfies Record<Right, unknown>

export const RIGHT_MEANINGS = {
  look: msg`See whether it runs, who plays, the console and what happened`,
  console: msg`Also send commands, start and stop`,
  files: msg`Also change files, make backups and restore them`,
  everything: msg`Also settings and names, and delete the server`,
} as const satisfies Record<Right, unknown>
