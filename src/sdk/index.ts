// The typed client of a Gamekeeper service, for Node and for browsers.

export type { ActivityEntry, ActivityQuery, Verification } from '../contract/activity.ts'
export type { BackupChange, BackupFile, FileVersion } from '../contract/backups/backup-contents.ts'
export type { NewSchedule, RetentionPolicy, Schedule } from '../contract/backups/backup-plans.ts'
export type { Backup, NewBackup, Recovery, RestoreRequest } from '../contract/backups/backups.ts'
export type { ErrorCode, FieldFault } from '../contract/errors.ts'
export type { ArchiveFormat, DiskUsage, FileEntry, TrashItem } from '../contract/files/files.ts'
export type { ConsoleLine, ConsoleQuery } from '../contract/games/console.ts'
export type { Power, PowerAction, PowerState, Runtime } from '../contract/games/power.ts'
export type { Template, TemplateVariable } from '../contract/games/template-format.ts'
export type {
  ImportedTemplate,
  ReportEntry,
  StoredTemplate,
  TemplateMediaType,
  TemplateSummary,
} from '../contract/games/templates.ts'
export type { Invitation, MadeInvitation, NewInvitation } from '../contract/invitations.ts'
export type { Job, JobStatus, Progress } from '../contract/jobs.ts'
export type { Page } from '../contract/schema.ts'
export type { Scope } from '../contract/scopes.ts'
export type { DeletionPlan, NewServer, Server, ServerChange } from '../contract/servers.ts'
export type { NewSession, SignedIn, SignInLink } from '../contract/sessions.ts'
export type { DnsFinding, NewSubdomain, Subdomain, ZoneInfo } from '../contract/subdomains.ts'
export type { MintedToken, NewToken, OwnToken, Token } from '../contract/tokens.ts'
export { EXPORT_FORMATS, type ExportFormat } from './activity.ts'
export type { BackupFormat, BackupQuery, BackupWaitOptions } from './backups.ts'
export { type Client, createClient } from './client.ts'
export type { Download, DownloadOptions } from './download.ts'
export { ApiError, BackupError, isApiError, JobError, TransportError, type TransportFault } from './errors.ts'
export type { FileContent, FileQuery, SearchQuery, TrashQuery, WriteOptions } from './files.ts'
export type { JobQuery, WaitOptions } from './jobs.ts'
export type { CallArguments, CallOptions, RawBody } from './request.ts'
export type { DeleteOptions, ServerQuery } from './servers.ts'
export type { Readiness } from './service.ts'
export type { FollowOptions } from './streams/follow-activity.ts'
export type { FollowConsoleOptions } from './streams/follow-console.ts'
export type { SubdomainQuery } from './subdomains.ts'
export type { NewTemplateOptions, TemplateQuery } from './templates.ts'
export type { TokenQuery } from './tokens.ts'
export type { ClientOptions, Method } from './transport.ts'
export type { ChunkReader, Uploaded, UploadOptions, UploadSource } from './upload.ts'
export type { FormOptions, NamedBlob } from './upload-form.ts'
