// `gamekeeper backup recover`: for the day when the database is gone.
import type { StoredBackup } from '../../../contract/agent/agent-backups.ts'
import type { Recovery } from '../../../contract/backups/backups.ts'
import { command } from '../../command.ts'
import type { Context } from '../../context.ts'
import { EXIT, UsageError } from '../../exit-codes.ts'
import { createProgress } from '../../progress.ts'
import { type Column, formatTable, safe } from '../../text.ts'
import { formatSize, formatTime } from '../../units.ts'
import type { RecoveredStore } from '../serve.ts'

export const recover = command({
  summary: 'Rebuild the list of backups from a store',
  description:
    'For when the database is lost, or the machine. With --store, on this machine and while the service is stopped: the\n' +
    'backups in DIR that the data directory lacks are copied into it, and added to its database with their servers. From\n' +
    'an off-site store (s3://BUCKET/PREFIX, as GAMEKEEPER_OFFSITE has it) only the list is copied: what is restored is read\n' +
    'from there. The bucket is taken over: the service that it belonged to sends nothing there any more; --list leaves it\n' +
    'alone. Without --store, the running service restores to its list what is in its own store. Safe to repeat. Exits with 1\n' +
    'when a backup is damaged, or lacks a pack in the store.',
  args: [],
  options: {
    store: { type: 'string', value: 'DIR', help: 'A backup store, the data directory that contains it, or s3://…' },
    list: { type: 'boolean', help: 'Only show what the store contains; writes nothing' },
    data: { type: 'string', value: 'DIR', help: 'The data directory; GAMEKEEPER_DATA_DIR, else ./data' },
    'key-file': { type: 'string', value: 'FILE', help: 'A file with the key; else GAMEKEEPER_BACKUP_KEY' },
  },
  examples: [
    'gamekeeper backup recover --store /mnt/old/backups --list',
    'gamekeeper backup recover --store /mnt/old/backups --data /srv/gamekeeper',
    'gamekeeper backup recover --store "$GAMEKEEPER_OFFSITE" --data /srv/gamekeeper',
    'gamekeeper backup recover',
  ],
  async run(context, options) {
    const { store, list = false, data, 'key-file': keyFile } = options
    if (store !== undefined) return recoverHere(context, { store, list, data, keyFile })
    if (list || data !== undefined || keyFile !== undefined)
      throw new UsageError('--list, --data and --key-file need --store DIR.')
    const found = await context.client().backups.recover({ signal: context.io.signal })
    if (context.json) context.print(found)
    else context.say(`${countsOf(found)}.`)
    return undefined
  },
})

interface Request {
  store: string
  list: boolean
  data: string | undefined
  keyFile: string | undefined
}

async function recoverHere(context: Context, request: Request): Promise<number> {
  // Only now: other commands do not wait for the service to be read from disk.
  const { recoverStore } = await import('../serve.ts')
  const progress = createProgress(context.io.stderr, { quiet: context.json })
  const found = await recoverStore(context.environment.all, request, (done, total) =>
    progress.update('Copying', {
      filesDone: done.blobCount,
      filesTotal: total.blobCount,
      bytesDone: done.bytes,
      bytesTotal: total.bytes,
    }),
  ).finally(() => progress.end())
  if (context.json) context.print(documentOf(found))
  else show(context, found)
  return found.backups.some(({ damage }) => damage !== null) ? EXIT.failed : EXIT.ok
}

interface ServerInStore {
  id: string
  name: string | null
  backups: StoredBackup[]
}

/** Newest backup first; a server is called what that one calls it. */
function byServer(backups: readonly StoredBackup[]): ServerInStore[] {
  const ids = [...new Set(backups.map(({ serverId }) => serverId))].sort()
  return ids.map((id) => {
    const own = backups.filter(({ serverId }) => serverId === id).sort((a, b) => (a.backupId < b.backupId ? 1 : -1))
    return { id, name: own.find(({ backup }) => backup?.serverName)?.backup?.serverName ?? null, backups: own }
  })
}

function documentOf({ store, backups, owner, done }: RecoveredStore) {
  const servers = byServer(backups).map(({ id, name, backups: own }) => ({
    id,
    name,
    backups: own.map(({ backupId, backup, damage }) => ({
      id: backupId,
      name: backup?.name ?? null,
      isLocked: backup?.isLocked ?? null,
      fileCount: backup?.fileCount ?? null,
      sizeBytes: backup?.sizeBytes ?? null,
      checksum: backup?.checksum ?? null,
      createdAt: backup ? new Date(backup.createdAt).toISOString() : null,
      damage,
    })),
  }))
  return {
    store,
    servers,
    owner: owner && { ...owner, isTakenOver: done !== null && done.unclaimed === null },
    copied: done?.taken ?? null,
    recovered: done?.recovery ?? null,
    unclaimed: done?.unclaimed ?? null,
  }
}

const COLUMNS: Column<StoredBackup>[] = [
  { title: 'ID', cell: ({ backupId }) => backupId },
  { title: 'NAME', cell: ({ backup }) => backup?.name ?? '-', style: () => 'cyan' },
  { title: 'LOCKED', cell: ({ backup }) => (backup?.isLocked ? 'yes' : '') },
  { title: 'FILES', cell: ({ backup }) => String(backup?.fileCount ?? '-'), right: true },
  { title: 'SIZE', cell: ({ backup }) => (backup ? formatSize(backup.sizeBytes) : '-'), right: true },
  { title: 'CREATED', cell: ({ backup }) => (backup ? formatTime(new Date(backup.createdAt).toISOString()) : '-') },
  { title: 'STATE', cell: ({ damage }) => (damage === null ? 'intact' : `damaged: ${damage}`) },
]

function show(context: Context, { store, backups, owner, done }: RecoveredStore): void {
  const servers = byServer(backups)
  const how = store.isEncrypted ? 'encrypted' : 'unencrypted'
  context.say(`${store.dir} holds ${backups.length} backups of ${servers.length} servers, ${how}.`)
  for (const { id, name, backups: own } of servers) {
    context.say(`\n${name ?? 'Unknown name'} (${id})`)
    context.say(formatTable(own, COLUMNS, context.paint))
  }
  if (!done) {
    if (owner) context.say(`\nThe bucket belongs to ${nameOf(owner)}. Without --list it is taken over: ${CONSEQUENCE}`)
    return
  }
  const { blobCount, bytes } = done.taken
  context.say(`\n${blobCount} files (${formatSize(bytes)}) copied. ${countsOf(done.recovery)}.`)
  if (done.unclaimed) context.say(`Nothing is sent to the bucket yet: ${done.unclaimed} See gamekeeper offsite claim.`)
  else if (owner)
    context.say(`The bucket belonged to ${nameOf(owner)}, and was taken over: ${CONSEQUENCE} ${GIVE_BACK}`)
  context.say('Start the service, then restore with "gamekeeper backup restore".')
}

const CONSEQUENCE = 'that service sends nothing there any more, and the one of this data directory does.'
const GIVE_BACK = 'If that one still runs, "gamekeeper offsite claim" gives the bucket back to it.'

/** The bucket says it, and whoever can write there. */
function nameOf({ host, claimedAt }: NonNullable<RecoveredStore['owner']>): string {
  const where = host === null ? 'another service' : `the service on ${safe(host)}`
  return claimedAt === null ? where : `${where} since ${formatTime(new Date(claimedAt).toISOString())}`
}

function countsOf({ adopted, servers, missing, damaged }: Recovery): string {
  const taken = `${adopted.length} backups and ${servers.length} servers recovered`
  return `${taken}, ${missing.length} missing, ${damaged.length} damaged`
}
