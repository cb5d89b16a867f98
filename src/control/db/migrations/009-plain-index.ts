import { ANSWER_SMALL_BYTES } from '../../../contract/fixed-limits.ts'
import type { Migration } from '../migrate.ts'

/** The sqlite3 of a distribution may be years older than ours, and copies nothing of which it does not know a function. */
export const plainIndex: Migration = {
  name: '009-plain-index',
  statements: [
    'drop index idempotency_large',
    `create index idempotency_large on idempotency (token_id) where length(answer) > ${ANSWER_SMALL_BYTES}`,
  ],
}
