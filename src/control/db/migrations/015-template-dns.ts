import type { Migration } from '../migrate.ts'

export const templateDns: Migration = {
  name: '015-template-dns',
  statements: [
    // What of a template the records of subdomains need: all of it would be read for each of them otherwise.
    'alter table templates add column srv text',
    'alter table templates add column default_port integer',
  ],
}
