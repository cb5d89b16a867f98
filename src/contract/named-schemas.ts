// What the OpenAPI document calls things. A schema that is not here is named after its operation.
import { ActivityEntry, Verification } from './activity.ts'
import { BackupChange, BackupFile, FileVersion } from './backups/backup-contents.ts'
import { Expiry, NewRetention, NewSchedule, RetentionPolicy, Schedule, ScheduleChange } from './backups/backup-plans.ts'
import { BackupPreview } from './backups/backup-preview.ts'
import { Backup, FinishRequest, NewBackup, Recovery, RestoreRequest } from './backups/backups.ts'
import { BackupOffsite, Offsite, PruneRequest } from './backups/offsite.ts'
import { Rehearsal, RehearsalLog, RehearsalRequest } from './backups/rehearsals.ts'
import { DiskUsage, DownloadLocation, FileEntry, SearchMatch, TrashItem, UploadLocation } from './files/files.ts'
import { Players } from './games/players.ts'
import { Stats, StatsPoint } from './games/stats.ts'
import { TemplateVariable } from './games/template-format.ts'
import { ImportedTemplate, ReportEntry, StoredTemplate, TemplateOrEgg, TemplateSummary } from './games/templates.ts'
import { Invitation, MadeInvitation, NewInvitation } from './invitations.ts'
import { Job, Progress, WorkError } from './jobs.ts'
import type { TSchema } from './schema.ts'
import { Limits } from './server-limits.ts'
import { Deletion, DeletionPlan, Freed, NewServer, Server, ServerChange } from './servers.ts'
import { NewSession, Session, SignedIn, SignInLink, StartedSession } from './sessions.ts'
import { DnsFinding, NewSubdomain, Subdomain, ZoneInfo } from './subdomains.ts'
import { MintedToken, NewToken, OwnToken, Token } from './tokens.ts'

export const NAMED_SCHEMAS: Readonly<Record<string, TSchema>> = {
  ActivityEntry,
  Backup,
  BackupChange,
  BackupFile,
  BackupOffsite,
  BackupPreview,
  Deletion,
  DeletionPlan,
  DiskUsage,
  DnsFinding,
  DownloadLocation,
  Expiry,
  FileEntry,
  FileVersion,
  FinishRequest,
  Freed,
  ImportedTemplate,
  Invitation,
  Job,
  Limits,
  MadeInvitation,
  MintedToken,
  NewBackup,
  NewInvitation,
  NewRetention,
  NewSchedule,
  NewServer,
  NewSession,
  NewSubdomain,
  NewToken,
  Offsite,
  OwnToken,
  Players,
  Progress,
  PruneRequest,
  Recovery,
  Rehearsal,
  RehearsalLog,
  RehearsalRequest,
  ReportEntry,
  RestoreRequest,
  RetentionPolicy,
  Schedule,
  ScheduleChange,
  SearchMatch,
  Server,
  ServerChange,
  Session,
  SignedIn,
  SignInLink,
  StartedSession,
  Stats,
  StatsPoint,
  StoredTemplate,
  Subdomain,
  TemplateOrEgg,
  TemplateSummary,
  TemplateVariable,
  Token,
  TrashItem,
  UploadLocation,
  Verification,
  WorkError,
  ZoneInfo,
}
