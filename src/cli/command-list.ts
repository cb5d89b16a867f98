// Every command, loaded only when it is called: a client does not wait for the service to be read from disk. A new
// command is a file in `commands/` and a line here.
import type { Family } from './command.ts'

export interface Entry {
  summary: string
  load(): Promise<Family>
}

export const COMMANDS: Readonly<Record<string, Entry>> = {
  serve: { summary: 'Run the service', load: async () => (await import('./commands/serve.ts')).serve },
  service: {
    summary: 'Make this installation a service of systemd',
    load: async () => (await import('./commands/service.ts')).service,
  },
  server: {
    summary: 'Create, list, show, change and delete servers',
    load: async () => (await import('./commands/server.ts')).server,
  },
  files: {
    summary: 'List, get, put, move, copy, delete and bring back files',
    load: async () => (await import('./commands/files/files.ts')).files,
  },
  backup: {
    summary: 'Make, list, look into, restore, download and delete backups',
    load: async () => (await import('./commands/backup/backup.ts')).backup,
  },
  schedule: {
    summary: 'Make backups by a schedule',
    load: async () => (await import('./commands/schedule.ts')).schedule,
  },
  subdomain: {
    summary: 'List, add and remove subdomains',
    load: async () => (await import('./commands/subdomain.ts')).subdomain,
  },
  dns: { summary: 'Compare DNS with what it should hold', load: async () => (await import('./commands/dns.ts')).dns },
  activity: {
    summary: 'Read, follow, export and verify what has happened',
    load: async () => (await import('./commands/activity.ts')).activity,
  },
  jobs: {
    summary: 'Look at long work, wait for it, cancel it',
    load: async () => (await import('./commands/jobs.ts')).jobs,
  },
  token: { summary: 'Make, list and revoke tokens', load: async () => (await import('./commands/token.ts')).token },
  completion: {
    summary: 'Complete commands and names in your shell',
    load: async () => (await import('./commands/completion.ts')).completion,
  },
  doctor: {
    summary: 'Check this machine, the service and the token',
    load: async () => (await import('./commands/doctor.ts')).doctor,
  },
}
