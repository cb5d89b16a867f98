// `gamekeeper offsite …`
import type { Family } from '../../command.ts'
import { claim, prune, status } from './offsite-mirror.ts'

export const offsite: Family = { subcommands: { status, prune, claim } }
