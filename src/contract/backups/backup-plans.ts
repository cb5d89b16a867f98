// Which backups are made by themselves, and which are kept.

import { operation } from '../operation.ts'
import { BOUNDS } from '../operation-bounds.ts'
import {
  BLANK_IS_ABSENT,
  Closed,
  Id,
  Name,
  Nullable,
  OneOf,
  OptionalName,
  OTHERWISE,
  Page,
  PageQuery,
  ServerParams,
  type Static,
  TEXT,
  Timestamp,
  Type,
} from '../schema.ts'
import { Backup, Ignored } from './backups.ts'

const Keep = (what: string) =>
  Nullable(
    Type.Integer({ minimum: 1, maximum: 10_000, description: `How many ${what} to keep; null: none for this reason` }),
  )

export const RetentionPolicy = Type.Object(
  {
    keepLast: Keep('of the newest'),
    keepHourly: Keep('hours, the newest of each,'),
    keepDaily: Keep('days, the newest of each,'),
    keepWeekly: Keep('weeks, the newest of each,'),
    keepMonthly: Keep('months, the newest of each,'),
  },
  {
    description:
      'A backup is kept if any rule keeps it. Where every rule is null, all are kept. Days begin at 00:00 UTC, weeks on Monday',
  },
)
export type RetentionPolicy = Static<typeof RetentionPolicy>

const RULES = Object.keys(RetentionPolicy.properties)

export const NewRetention = Closed(
  {
    keepLast: Type.Optional(RetentionPolicy.properties.keepLast),
    keepHourly: Type.Optional(RetentionPolicy.properties.keepHourly),
    keepDaily: Type.Optional(RetentionPolicy.properties.keepDaily),
    keepWeekly: Type.Optional(RetentionPolicy.properties.keepWeekly),
    keepMonthly: Type.Optional(RetentionPolicy.properties.keepMonthly),
  },
  {
    description: 'At least one rule, the others being null; or all five as null, to keep every backup',
    // Nobody takes all rules away by leaving them out.
    anyOf: [
      ...RULES.map((rule) => ({ required: [rule], properties: { [rule]: { type: 'integer' } } })),
      { required: RULES },
    ],
    [OTHERWISE]: 'must give at least one rule, or all five as null to keep every backup',
  },
)
export type NewRetention = Static<typeof NewRetention>

export const Expiry = Type.Object({
  dryRun: Type.Boolean(),
  expired: Type.Array(Backup, { description: 'Deleted now, or those that would be' }),
  keptCount: Type.Integer(),
})
export type Expiry = Static<typeof Expiry>

const Cron = Type.String({
  minLength: 9,
  maxLength: 120,
  pattern: TEXT,
  description: 'Five fields: minute, hour, day of the month, month, day of the week',
})
const TIME_ZONE = { minLength: 1, maxLength: 64, pattern: TEXT, description: 'Such as `Europe/Berlin`' }
const TimeZone = Type.String(TIME_ZONE)
const NAME_PATTERN = {
  minLength: 1,
  maxLength: 150,
  pattern: TEXT,
  description: '`{date}`, `{time}`, `{zone}` and `{server}` stand for what they say, in the time zone of the schedule',
}
const NamePattern = Type.String(NAME_PATTERN)

export const SCHEDULE_ACTIONS = ['backup', 'rehearse'] as const
const Action = OneOf(SCHEDULE_ACTIONS, {
  description:
    '`backup` makes one. `rehearse` starts the game from the newest backup (`POST …/rehearse`); of the other settings only `onlyIfChanged` counts then, which leaves out a backup that has passed one already. `backup` by default',
})

export const Schedule = Type.Object({
  id: Id,
  serverId: Id,
  name: Name,
  action: Action,
  cron: Cron,
  timeZone: TimeZone,
  namePattern: NamePattern,
  ignored: Type.String(),
  isLocked: Type.Boolean({ description: 'Whether its backups are locked' }),
  onlyIfChanged: Type.Boolean(),
  isEnabled: Type.Boolean(),
  nextRunAt: Nullable(Timestamp),
  lastRunAt: Nullable(Timestamp),
  lastOutcome: Nullable(Type.String({ description: '`started`, `unchanged`, or the code of the error' })),
  lastBackupId: Nullable(Id),
  createdAt: Timestamp,
  updatedAt: Timestamp,
})
export type Schedule = Static<typeof Schedule>

const settings = {
  action: Type.Optional(Action),
  timeZone: Type.Optional(Type.String({ ...TIME_ZONE, [BLANK_IS_ABSENT]: true })),
  namePattern: Type.Optional(Type.String({ ...NAME_PATTERN, [BLANK_IS_ABSENT]: true })),
  ignored: Type.Optional(Ignored),
  isLocked: Type.Optional(Type.Boolean()),
  onlyIfChanged: Type.Optional(Type.Boolean()),
  isEnabled: Type.Optional(Type.Boolean()),
}
export const NewSchedule = Closed({ name: Name, cron: Cron, ...settings })
export type NewSchedule = Static<typeof NewSchedule>
export const ScheduleChange = Closed(
  { name: OptionalName, cron: Type.Optional(Cron), ...settings },
  { minProperties: 1, description: 'Fields that are absent stay as they are' },
)
export type ScheduleChange = Static<typeof ScheduleChange>

const at = '2026-11-15T00:00:00.000Z'
const serverId = 'srv_01k9zq6m3t8v5w2x7y4c1b6d9e'
const policyExample = { keepLast: 5, keepHourly: null, keepDaily: 7, keepWeekly: 4, keepMonthly: 12 }
const scheduleExample = {
  id: 'sch_01k9zq6m3t8v5w2x7y4c1b6d9e',
  serverId,
  name: 'Nightly',
  action: 'backup',
  cron: '0 4 * * *',
  timeZone: 'Europe/Berlin',
  namePattern: 'Nightly {date}',
  ignored: '',
  isLocked: false,
  onlyIfChanged: true,
  isEnabled: true,
  nextRunAt: at,
  lastRunAt: null,
  lastOutcome: null,
  lastBackupId: null,
  createdAt: at,
  updatedAt: at,
}

const tag = 'Backups'
const params = ServerParams
const ScheduleParams = Closed({ ...ServerParams.properties, scheduleId: Id })
const schedules = '/backups/{serverId}/schedules'
const bodyErrors = ['too_large', 'unsupported_media_type'] as const

export const readRetention = operation({
  id: 'readRetention',
  method: 'GET',
  path: '/backups/{serverId}/retention',
  tag,
  summary: 'Read which backups of a server are kept',
  scope: 'backups:read',
  bound: BOUNDS.rows,
  params,
  answers: { 200: { description: 'The policy', schema: RetentionPolicy, example: policyExample } },
  errors: [],
})

export const setRetention = operation({
  id: 'setRetention',
  method: 'PUT',
  path: '/backups/{serverId}/retention',
  tag,
  summary: 'Say which backups of a server are kept',
  description:
    'Replaces the policy as a whole: a rule that is absent is null. It is applied after each successful backup, never before one, and never to locked backups.',
  scope: 'backups:write',
  bound: BOUNDS.body,
  params,
  body: NewRetention,
  bodyExample: policyExample,
  answers: { 200: { description: 'The policy as it is now', schema: RetentionPolicy, example: policyExample } },
  errors: [...bodyErrors, 'server_busy'],
})

export const applyRetention = operation({
  id: 'applyRetention',
  method: 'POST',
  path: '/backups/{serverId}/retention/apply',
  tag,
  summary: 'Apply the policy now, or show what it would do',
  scope: 'backups:write',
  bound: BOUNDS.backups,
  params,
  // Required: backups are not deleted by a request that says nothing.
  body: Closed({ dryRun: Type.Boolean({ description: 'true shows what would go; false deletes it' }) }),
  bodyExample: { dryRun: true },
  answers: {
    200: {
      description: 'What expired, or would',
      schema: Expiry,
      example: { dryRun: true, expired: [], keptCount: 12 },
    },
  },
  errors: [...bodyErrors, 'server_busy', 'idempotency_conflict'],
})

export const listSchedules = operation({
  id: 'listSchedules',
  method: 'GET',
  path: schedules,
  tag,
  summary: 'List the schedules of a server',
  scope: 'backups:read',
  description: 'Oldest first.',
  bound: BOUNDS.page,
  params,
  query: Closed({ ...PageQuery }),
  answers: {
    200: {
      description: 'A page of schedules',
      schema: Page(Schedule),
      example: { data: [scheduleExample], nextCursor: null },
    },
  },
  errors: [],
})

export const createSchedule = operation({
  id: 'createSchedule',
  method: 'POST',
  path: schedules,
  tag,
  summary: 'Make backups by a schedule',
  description:
    'A run that was missed while the service was down is made up for once. 50 schedules for a server at most.',
  scope: 'backups:write',
  bound: BOUNDS.body,
  params,
  body: NewSchedule,
  bodyExample: { name: 'Nightly', cron: '0 4 * * *', timeZone: 'Europe/Berlin', onlyIfChanged: true },
  answers: { 201: { description: 'The schedule', schema: Schedule, example: scheduleExample } },
  errors: [...bodyErrors, 'server_busy', 'already_exists', 'idempotency_conflict'],
})

export const readSchedule = operation({
  id: 'readSchedule',
  method: 'GET',
  path: `${schedules}/{scheduleId}`,
  tag,
  summary: 'Read one schedule',
  scope: 'backups:read',
  bound: BOUNDS.rows,
  params: ScheduleParams,
  answers: { 200: { description: 'The schedule', schema: Schedule, example: scheduleExample } },
  errors: [],
})

export const changeSchedule = operation({
  id: 'changeSchedule',
  method: 'PATCH',
  path: `${schedules}/{scheduleId}`,
  tag,
  summary: 'Change a schedule',
  scope: 'backups:write',
  bound: BOUNDS.body,
  params: ScheduleParams,
  body: ScheduleChange,
  bodyExample: { isEnabled: false },
  answers: { 200: { description: 'The schedule as it is now', schema: Schedule, example: scheduleExample } },
  errors: [...bodyErrors, 'server_busy', 'already_exists'],
})

export const deleteSchedule = operation({
  id: 'deleteSchedule',
  method: 'DELETE',
  path: `${schedules}/{scheduleId}`,
  tag,
  summary: 'Delete a schedule',
  description: 'The backups that it made stay.',
  scope: 'backups:write',
  bound: BOUNDS.rows,
  params: ScheduleParams,
  answers: { 204: { description: 'Gone' } },
  errors: ['server_busy'],
})

export const BACKUP_PLAN_OPERATIONS = [
  readRetention,
  setRetention,
  applyRetention,
  listSchedules,
  createSchedule,
  readSchedule,
  changeSchedule,
  deleteSchedule,
] as const
