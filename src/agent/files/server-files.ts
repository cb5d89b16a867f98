// Everything about the files of one server, put together: the sandbox, its staging and trash, its account and its lock.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Failure, fail, serverDeleted } from '../../contract/errors.ts'
import { DEFAULT_ENTRIES_MAX } from '../../contract/fixed-limits.ts'
import { hasCode } from '../../kit/files/errno.ts'
import type { Intent, Journal } from '../journal/journal.ts'
import type { Layout, ServerFolders } from '../layout.ts'
import { createRestoreGate, type RestoreGate } from '../restore-state.ts'
import { type Claims, createClaims } from './changes/claims.ts'
import { createPlacements, type Placements } from './changes/placements.ts'
import { createServerLock, type ServerLock } from './locks.ts'
import { openSandbox, type Sandbox } from './sandbox/sandbox.ts'
import { createStaging, type Staging } from './sandbox/staging.ts'
import { diskBytes } from './space/amounts.ts'
import type { ServerDisk } from './space/disk.ts'
import { createUsage, type Quota, type Usage } from './space/usage.ts'
import { createTrash, type Trash } from './trash/trash.ts'
import type { FreedTrash } from './trash/trash-freeing.ts'

export interface ServerFiles {
  readonly serverId: string
  readonly folders: ServerFolders
  readonly files: Sandbox
  readonly staging: Staging
  readonly trash: Trash
  readonly usage: Usage
  readonly lock: ServerLock
  /** Closed while a restore has stopped in the middle. */
  readonly gate: RestoreGate
  readonly placements: Placements
  readonly journal: Journal
  /** Of paths, and of what else two changes cannot share. */
  readonly claims: Claims
  /** Intents of changes that failed, and of which the disk could not be asked how far they came. */
  readonly unsettled: Set<Intent>
  /** For faults that are nobody's answer. */
  onUnexpected(error: unknown): void
  /** Kept on disk. */
  setQuota(quota: Quota): void
}

export interface ServerFilesDeps {
  layout: Layout
  journal: Journal
  trashKeepMs: number
  now: () => number
  diskOf: (serverId: string, folder: string) => ServerDisk
  /** Resolves once it is durable that trash of this server was freed. */
  recordFreed: (serverId: string, freed: FreedTrash) => Promise<void>
  onUnexpected: (error: unknown, serverId: string) => void
}

export function createServerFiles(deps: ServerFilesDeps, serverId: string): ServerFiles {
  const folders = deps.layout.server(serverId)
  if (!existsSync(folders.root)) throw absence(deps.layout, serverId)
  mkdirSync(folders.files, { recursive: true })
  // Nobody but us looks into these: what is half made has not got its owner and its mode yet.
  for (const folder of [folders.trash, folders.staging]) mkdirSync(folder, { recursive: true, mode: 0o700 })
  const quotaFile = join(folders.root, 'quota.json')
  let quota = readQuota(quotaFile)
  const files = openSandbox(folders.files, {
    onMade: ({ stats }) => usage.changed({ bytes: diskBytes(stats), entries: 1 }),
  })
  const staging = createStaging(folders.staging, (error) => deps.onUnexpected(error, serverId))
  const gate = createRestoreGate(folders.staging)
  const lock = createServerLock(gate)
  const trash = createTrash({
    folderPath: folders.trash,
    files,
    staging,
    keepMs: deps.trashKeepMs,
    now: deps.now,
    onChanged: (amount) => usage.trashChanged(amount),
    isHeld: gate.holds,
    share: lock.shareTrash,
    recordFreed: (freed) => deps.recordFreed(serverId, freed),
    onUnreadable: (name) =>
      deps.onUnexpected(
        new Error(`The record of ${join(folders.trash, name)} cannot be read: its items are kept.`),
        serverId,
      ),
  })
  const usage: Usage = createUsage({
    serverId,
    folders,
    quota,
    trash,
    disk: deps.diskOf(serverId, folders.files),
    now: deps.now,
    onUnexpected: (error) => deps.onUnexpected(error, serverId),
  })
  return {
    serverId,
    folders,
    files,
    staging,
    trash,
    usage,
    lock,
    gate,
    journal: deps.journal,
    claims: createClaims(),
    unsettled: new Set(),
    onUnexpected: (error) => deps.onUnexpected(error, serverId),
    placements: createPlacements(join(folders.root, 'placed'), files),
    setQuota(next) {
      if (next.bytes === quota.bytes && next.entries === quota.entries) return
      const record: QuotaRecord = { quotaBytes: next.bytes, maxEntries: next.entries }
      writeFileSync(`${quotaFile}.new`, JSON.stringify(record), { flush: true })
      renameSync(`${quotaFile}.new`, quotaFile)
      quota = next
      usage.setQuota(next)
    },
  }
}

interface QuotaRecord {
  quotaBytes: number | null
  /** Earlier versions knew none. */
  maxEntries?: number | null
}

function readQuota(file: string): Quota {
  try {
    const { quotaBytes, maxEntries = DEFAULT_ENTRIES_MAX } = JSON.parse(readFileSync(file, 'utf8')) as QuotaRecord
    return { bytes: quotaBytes, entries: maxEntries }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return { bytes: null, entries: DEFAULT_ENTRIES_MAX }
    throw error
  }
}

/** Control may have let in somebody whose server was put aside in the meantime. */
function absence({ held }: Layout, serverId: string): Failure {
  return existsSync(join(held, serverId)) ? serverDeleted() : fail('not_found', 'No such server.')
}
