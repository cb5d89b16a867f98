// What to do about an error, by its code. The service says what is wrong, in English and in its own words; this is in the reader's.
import type { MessageDescriptor } from '@lingui/core'
import { msg } from '@lingui/core/macro'
import { type ApiError, isApiError } from '../../../src/sdk/index.ts'

/** Codes that a page handles by itself, or that only a program meets, have none. */
const ADVICE: Partial<Record<ApiError['code'], MessageDescriptor>> = {
  forbidden: msg`Your access does not include this. Ask whoever gave it to you.`,
  not_found: msg`It may be deleted or renamed by now. Go back and look again.`,
  already_exists: msg`Choose another name, or move what is there out of the way.`,
  backup_locked: msg`Unlock the backup first.`,
  backup_not_ready: msg`Wait until the backup is complete.`,
  backup_damaged: msg`Look inside it: what is intact can be restored. Or take another backup.`,
  backup_limit_reached: msg`Delete a backup that you no longer need, or have the limit raised.`,
  subdomain_limit_reached: msg`Delete a name that you no longer need, or have the limit raised.`,
  server_running: msg`Stop the game first.`,
  server_not_running: msg`Start the game first.`,
  server_busy: msg`Wait until that is done, then try again.`,
  restore_unfinished: msg`Choose under Backups how the restore ends.`,
  port_taken: msg`Give the server another port in its settings, or end the other program.`,
  quota_exceeded: msg`Delete files or empty the trash, or have the limit raised.`,
  template_in_use: msg`Give the servers that use it another game first.`,
  invalid_archive: msg`Pack it again, as .zip or .tar.gz, and upload that.`,
  precondition_failed: msg`Somebody has changed it meanwhile. Load it again.`,
  too_large: msg`It is more than fits at once. Take less, or upload it as a file.`,
  rate_limited: msg`Wait a moment, then try again.`,
  internal: msg`Try again. If it stays, give the request id to whoever runs this service.`,
  agent_unreachable: msg`Try again in a moment. If it stays, look whether the machine is up.`,
  not_ready: msg`Try again in a moment.`,
  dns_unavailable: msg`It is tried again by itself.`,
  offsite_unreachable: msg`It is tried again by itself. Instance says how the off-site store stands.`,
  disk_full: msg`Make room on the disk of the machine: empty the trash, or delete old backups.`,
  disk_read_only: msg`Look at the disk of the machine before anything else.`,
  disk_failing: msg`Look at the disk of the machine before anything else.`,
}

export const adviceFor = (error: unknown): MessageDescriptor | null =>
  isApiError(error) ? (ADVICE[error.code] ?? null) : null
