import type { Migration } from '../migrate.ts'
import { foundation } from './001-foundation.ts'
import { subdomains } from './002-subdomains.ts'
import { backups } from './003-backups.ts'
import { servers } from './004-servers.ts'
import { restores } from './005-restores.ts'
import { jobBounds } from './006-job-bounds.ts'
import { entries } from './007-entries.ts'
import { tenantGrowth } from './008-tenant-growth.ts'
import { plainIndex } from './009-plain-index.ts'
import { templates } from './010-templates.ts'
import { games } from './011-games.ts'
import { worlds } from './012-worlds.ts'
import { sleep } from './013-sleep.ts'
import { runtimeChoice } from './014-runtime-choice.ts'
import { templateDns } from './015-template-dns.ts'
import { sessions } from './016-sessions.ts'
import { sessionPlaces } from './017-session-places.ts'
import { offsite } from './018-offsite.ts'
import { deletedBackups } from './019-deleted-backups.ts'

/** In order, and only ever added to: what has run somewhere is never edited. */
export const MIGRATIONS: readonly Migration[] = [
  ...[foundation, subdomains, backups, servers, restores],
  ...[jobBounds, entries, tenantGrowth, plainIndex, templates, games, worlds, sleep, runtimeChoice],
  ...[templateDns, sessions, sessionPlaces, offsite, deletedBackups],
]
