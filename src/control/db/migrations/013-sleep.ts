import type { Migration } from '../migrate.ts'

export const sleep: Migration = {
  name: '013-sleep',
  statements: ['alter table servers add column sleep_after_minutes integer'],
}
