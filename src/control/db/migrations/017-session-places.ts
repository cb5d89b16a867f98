import type { Migration } from '../migrate.ts'

/** Where each session was begun, for whoever looks where they are signed in. Not known of older ones. */
export const sessionPlaces: Migration = {
  name: '017-session-places',
  statements: ['alter table sessions add column user_agent text', 'alter table sessions add column ip text'],
}
