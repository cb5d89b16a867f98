import type { Migration } from '../migrate.ts'

export const runtimeChoice: Migration = {
  name: '014-runtime-choice',
  statements: [
    // As JSON; null is a process.
    'alter table servers add column runtime_choice text',
  ],
}
