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
    summary: 'Set this installation up as a systemd service',
    load: async () => (await import('./commands/service.ts')).service,
  },
  server: {
    summary: 'Create, list, show, change and delete servers',
    load: async () => (await import('./commands/server.ts')).server,
  },
  start: { summary: 'Start the game of a server', load: async () => (await import('./commands/power.ts')).start },
  stop: {
    summary: 'Stop the game of a server, letting it save',
    load: async () => (await import('./commands/power.ts')).stop,
  },
  restart: {
    summary: 'Stop and start the game of a server',
    load: async () => (await import('./commands/power.ts')).restart,
  },
  kill: { summary: 'End the game of a server at once', load: async () => (await import('./commands/power.ts')).kill },
  console: {
    summary: 'Read and follow the console of a server, and send commands',
    load: async () => (await import('./commands/console.ts')).gameConsole,
  },
  stats: {
    summary: 'Show what the game of a server uses',
    load: async () => (await import('./commands/stats.ts')).stats,
  },
  players: {
    summary: 'Show who plays on a server',
    load: async () => (await import('./commands/stats.ts')).players,
  },
  files: {
    summary: 'List, get, put, move, copy, delete and restore files',
    load: async () => (await import('./commands/files/files.ts')).files,
  },
  backup: {
    summary: 'Create, list, browse, restore, download and delete backups',
    load: async () => (await import('./commands/backup/backup.ts')).backup,
  },
  offsite: {
    summary: 'Test the bucket that backups are mirrored to',
    load: async () => (await import('./commands/offsite/offsite.ts')).offsite,
  },
  schedule: {
    summary: 'Schedule backups',
    load: async () => (await import('./commands/schedule.ts')).schedule,
  },
  subdomain: {
    summary: 'List, add and remove subdomains',
    load: async () => (await import('./commands/subdomain.ts')).subdomain,
  },
  dns: {
    summary: 'Check DNS against what it should contain',
    load: async () => (await import('./commands/dns.ts')).dns,
  },
  activity: {
    summary: 'Read, follow, export and verify the activity log',
    load: async () => (await import('./commands/activity.ts')).activity,
  },
  jobs: {
    summary: 'List, show, wait for and cancel jobs',
    load: async () => (await import('./commands/jobs.ts')).jobs,
  },
  template: {
    summary: 'List, show, check, import and delete templates of games',
    load: async () => (await import('./commands/template.ts')).template,
  },
  token: { summary: 'Create, list and revoke tokens', load: async () => (await import('./commands/token.ts')).token },
  invitation: {
    summary: 'Invite people to the panel',
    load: async () => (await import('./commands/invitation.ts')).invitation,
  },
  'sign-in': {
    summary: 'Print a link that signs in to the panel once',
    load: async () => (await import('./commands/sign-in.ts')).signIn,
  },
  completion: {
    summary: 'Complete commands and names in your shell',
    load: async () => (await import('./commands/completion.ts')).completion,
  },
  doctor: {
    summary: 'Check this machine, the service and the token',
    load: async () => (await import('./commands/doctor.ts')).doctor,
  },
}
