import { operation } from './operation.ts'
import { BOUNDS } from './operation-bounds.ts'
import {
  Closed,
  Id,
  Nullable,
  OneOf,
  Page,
  PageQuery,
  ServerParams,
  type Static,
  TEXT,
  Timestamp,
  Type,
} from './schema.ts'
import { eventStreamOf } from './stream-examples.ts'

/** Everything that is ever recorded. A name, once given out, keeps its meaning. */
export const EVENTS = {
  'server.created': 'A server was created',
  'server.changed': 'Settings of the server were changed',
  'server.deletion_started': 'The deletion of the server was asked for',
  'server.deleted': 'The server was deleted; until it is purged it can be brought back',
  'server.undeleted': 'A deleted server was brought back with everything it had',
  'server.purged': 'A deleted server is gone for good, with its files and backups; its last entry',
  'server.installed': 'The game of the server was installed as its template says',
  'power.requested': 'A start, a stop, a restart or a kill of the game was asked for',
  'game.running': 'The game has started: players can join',
  'game.stopped': 'The game has ended, as it was told to',
  'game.over_quota': 'The game has written more than the disk quota of the server allows, and is stopped',
  'game.slept': 'The game was stopped because nobody played; it starts when somebody comes to play',
  'game.woken': 'Somebody came to play, so the game that slept is started',
  'game.crashed': 'The game has ended without being told to',
  'console.command_sent': 'A command was sent to the game',
  'player.joined': 'Somebody joined the game, as its console says',
  'player.left': 'Somebody left the game, as its console says',
  'player.changes_omitted': 'More joined and left within a minute than are recorded; the entry has their number',
  'access.denied': 'A token without the scope was refused',
  'token.created': 'A token was made',
  'token.revoked': 'A token was revoked',
  'invitation.created': 'Somebody was invited',
  'invitation.redeemed': 'An invitation was used, and became a token',
  'invitation.revoked': 'An invitation was taken back',
  'session.started': 'Somebody signed in to the panel',
  'session.ended':
    'Somebody signed out of the panel, or ended a session from elsewhere; `tokenId` says whose, where it was not their own',
  'file.deleted': 'Files or folders were moved to the trash',
  'file.folder_created': 'A folder was made',
  'file.copied': 'A file or folder was copied',
  'file.moved': 'Files or folders were moved or renamed',
  'file.mode_changed': 'The mode of files or folders was changed',
  'file.written': 'The content of a file was written',
  'file.uploaded': 'Files were uploaded',
  'file.restored': 'Something was put back from the trash',
  'file.trash_emptied': 'The trash was emptied',
  'file.trash_freed': 'The oldest items of the trash were removed to make room',
  'file.packed': 'Files were packed into an archive',
  'file.unpacked': 'An archive was unpacked',
  'file.pulled': 'A file was fetched from an address',
  'subdomain.created': 'A subdomain was asked for',
  'subdomain.activated': 'The DNS provider has confirmed the records of a subdomain',
  'subdomain.provider_failed': 'The DNS provider could not do what it was asked for',
  'subdomain.repaired': 'Records of a subdomain that were missing or altered are put right',
  'subdomain.orphan_removed': 'Records of ours that belonged to no subdomain were removed from a zone',
  'subdomain.deletion_started': 'The deletion of a subdomain was asked for',
  'subdomain.deleted': 'A subdomain is gone from DNS',
  'backup.started': 'A backup was asked for',
  'backup.completed': 'A backup has completed',
  'backup.failed': 'A backup failed',
  'backup.cancelled': 'A backup was cancelled before it had completed',
  'backup.locked': 'A backup was locked',
  'backup.unlocked': 'A backup was unlocked',
  'backup.deleted': 'A backup was deleted',
  'backup.expired': 'A backup was deleted by retention',
  'backup.restore_started': 'The restore of a backup was asked for',
  'backup.restored': 'A backup was restored',
  'backup.restore_failed': 'The restore of a backup failed, and the files are as they were',
  'backup.restore_unfinished': 'The restore of a backup stopped in the middle, and waits for a choice',
  'backup.restore_undone': 'A restore that had stopped in the middle was taken back',
  'backup.restore_cancelled': 'The restore of a backup was cancelled, and the files are as they were',
  'backup.verified': 'Every block of a backup was read and found right',
  'backup.rehearsed': 'The game came up from a backup in a rehearsal',
  'backup.rehearsal_failed': 'The game did not come up from a backup in a rehearsal',
  'backup.damage_found': 'A backup was found damaged',
  'backup.healed': 'What the disk had lost of the backups was put in place again from the off-site store',
  'backup.adopted': 'A backup that was in the store and not in the list was taken back into it',
  'backup.lost': 'A backup that was in the list is no longer in the store',
  'backup.offsite_stored': 'A backup is in the off-site store too, with everything it needs',
  'backup.offsite_failed': 'Backups could not be sent to the off-site store; it is tried again until they are there',
  'backup.download_started': 'A backup, or a file out of one, is downloaded',
  'retention.changed': 'Retention rules changed',
  'schedule.created': 'A schedule for backups was made',
  'schedule.changed': 'A schedule for backups was changed',
  'schedule.deleted': 'A schedule for backups was deleted',
  'schedule.failed': 'A schedule could not start its backup or its rehearsal',
  'offsite.claimed': 'The off-site store was taken over from whoever had it',
  'offsite.removal_held': 'Most of the off-site store would be removed, so nothing is until somebody confirms it',
  'offsite.repaired': 'What was found damaged in the off-site store was replaced by what the disk has',
  'offsite.prune_confirmed': 'Somebody confirmed what may be removed from the off-site store',
  'job.started': 'A job was asked for',
  'job.failed': 'A job failed',
  'job.cancelled': 'A job was cancelled',
  'template.created': 'A template was added or imported',
  'template.replaced': 'A template was replaced by another of the same id',
  'template.deleted': 'A template was deleted',
  'activity.purged': 'Entries past the retention were purged',
} as const satisfies Record<`${string}.${string}`, string>

export type ActivityEvent = keyof typeof EVENTS
export const EVENT_NAMES = Object.keys(EVENTS) as [ActivityEvent, ...ActivityEvent[]]

export const SOURCES = ['api', 'cli', 'sdk', 'panel', 'link', 'schedule', 'system'] as const
export type ActivitySource = (typeof SOURCES)[number]

export const ActivityEntry = Type.Object({
  id: Id,
  serverId: Nullable(Id),
  event: OneOf(EVENT_NAMES),
  actor: Type.Object({ type: OneOf(['token', 'system']), id: Type.String(), name: Type.String() }),
  source: OneOf(SOURCES),
  ip: Nullable(Type.String()),
  userAgent: Nullable(Type.String()),
  requestId: Nullable(Type.String()),
  properties: Type.Record(Type.String(), Type.Unknown()),
  timestamp: Timestamp,
})
export type ActivityEntry = Static<typeof ActivityEntry>

const text = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 191, pattern: TEXT, description }))

export const ActivityQuery = Closed({
  ...PageQuery,
  event: Type.Optional(
    Type.String({
      pattern: '^[a-z]+\\.([a-z_]+|\\*)$',
      maxLength: 64,
      description: 'Exact, or a family such as `backup.*`',
    }),
  ),
  actor: text('The id of a token, or `system`'),
  since: Type.Optional(Timestamp),
  until: Type.Optional(Timestamp),
  q: text('Part of the event, the actor, the address, the request id or the properties'),
})
export type ActivityQuery = Static<typeof ActivityQuery>

export const Verification = Type.Object({
  intact: Type.Boolean(),
  chains: Type.Integer({ description: 'One for each server, and one for what concerns no server' }),
  entries: Type.Integer({ description: 'How many were checked' }),
  fault: Type.Union([
    Type.Object({
      kind: OneOf(['altered', 'removed', 'inserted', 'head']),
      serverId: Nullable(Type.String()),
      entryId: Nullable(Type.String()),
      position: Type.Integer({ description: 'The position in its chain, from 1' }),
      detail: Type.String(),
    }),
    Type.Null(),
  ]),
})
export type Verification = Static<typeof Verification>

const example = {
  id: 'act_01k9zq6m3t8v5w2x7y4c1b6d9e',
  serverId: 'srv_01k9zq6m3t8v5w2x7y4c1b6d9e',
  event: 'server.changed',
  actor: { type: 'token', id: 'tok_01k9zq6m3t8v5w2x7y4c1b6d9e', name: 'admin' },
  source: 'cli',
  ip: '203.0.113.9',
  userAgent: 'gamekeeper-cli/0.1.0',
  requestId: 'req_01k9zq6m3t8v5w2x7y4c1b6d9e',
  properties: { changes: { port: { from: 25565, to: 25566 } } },
  timestamp: '2026-11-15T00:00:00.000Z',
}
const verified = { intact: true, chains: 3, entries: 1200, fault: null }
const exportsOf = (entry: typeof example) => ({
  'application/x-ndjson': `${JSON.stringify(entry)}\n`,
  'text/csv': [
    'id,timestamp,event,serverId,actorType,actorId,actorName,source,ip,userAgent,requestId,properties',
    `${entry.id},${entry.timestamp},${entry.event},${entry.serverId},token,${entry.actor.id},admin,cli,${entry.ip},` +
      `${entry.userAgent},${entry.requestId},"{""changes"":{""port"":{""from"":25565,""to"":25566}}}"`,
    '',
  ].join('\r\n'),
})

export const listActivity = operation({
  id: 'listActivity',
  method: 'GET',
  path: '/servers/{serverId}/activity',
  tag: 'Activity',
  summary: "Read a server's activity",
  description:
    'Newest first. With `Accept: application/x-ndjson` or `text/csv` everything that matches is streamed, newest first. ' +
    'With `Accept: text/event-stream` entries are followed live, oldest first; `Last-Event-ID` resumes after that entry.',
  scope: 'activity:read',
  bound: BOUNDS.activity,
  params: ServerParams,
  query: ActivityQuery,
  answers: {
    200: {
      description: 'A page of entries, or a stream of all of them',
      schema: Page(ActivityEntry),
      alternatives: { ...exportsOf(example), ...eventStreamOf('activity', example, example.id) },
      example: { data: [example], nextCursor: null },
    },
  },
  errors: ['not_acceptable'],
})

export const listAllActivity = operation({
  id: 'listAllActivity',
  method: 'GET',
  path: '/activity',
  tag: 'Activity',
  summary: 'Read the activity of everything',
  description: 'Every server, also those that are deleted, and what concerns no server. Needs a token for all servers.',
  scope: 'activity:read',
  bound: BOUNDS.activity,
  query: ActivityQuery,
  answers: {
    200: {
      description: 'A page of entries, or a stream of all of them',
      schema: Page(ActivityEntry),
      alternatives: exportsOf(example),
      example: { data: [{ ...example, serverId: null, event: 'token.created' }], nextCursor: null },
    },
  },
  errors: ['not_acceptable'],
})

export const verifyActivity = operation({
  id: 'verifyActivity',
  method: 'GET',
  path: '/servers/{serverId}/activity/verify',
  tag: 'Activity',
  summary: "Check that nobody has tampered with a server's activity",
  description: 'Follows the hash chain and names the first entry that was altered, removed or inserted.',
  scope: 'activity:read',
  bound: BOUNDS.chain,
  params: ServerParams,
  answers: { 200: { description: 'What was found', schema: Verification, example: verified } },
  errors: [],
})

export const verifyAllActivity = operation({
  id: 'verifyAllActivity',
  method: 'GET',
  path: '/activity/verify',
  tag: 'Activity',
  summary: 'Check that nobody has tampered with any activity',
  description: 'Needs a token for all servers.',
  scope: 'activity:read',
  bound: BOUNDS.chain,
  answers: { 200: { description: 'What was found', schema: Verification, example: verified } },
  errors: [],
})
