import { ANSWER_SMALL_BYTES } from '../../../contract/fixed-limits.ts'
import type { Migration } from '../migrate.ts'

/** What is asked for by index, however many rows a tenant has made. */
export const tenantGrowth: Migration = {
  name: '008-tenant-growth',
  statements: [
    // Those of one status, among all that have ended; also those that have not.
    'create index jobs_by_status on jobs (server_id, status, id)',
    'drop index jobs_unfinished',
    `create index idempotency_large on idempotency (token_id) where octet_length(answer) > ${ANSWER_SMALL_BYTES}`,
  ],
}
