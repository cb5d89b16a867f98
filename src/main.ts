// The composition root: config, lock, database, agent, control, listen. The one file that sees everything.
import { existsSync, readFileSync } from 'node:fs'
import type { Server as HttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type DestinationStream, type Logger, pino } from 'pino'
import { moveIntoServer, requireAdoptable } from './agent/adopt.ts'
import {
  findOffsiteStore,
  findStore,
  listStore,
  reached,
  StoreFault,
  type Taken,
  takeOver,
} from './agent/backups/store/recovered-store.ts'
import { layout } from './agent/layout.ts'
import { keepFound, readFound } from './agent/offsite/found-bucket.ts'
import { claimPlace, type MirrorTarget } from './agent/offsite/index.ts'
import { type PlaceOwner, readOtherOwner } from './agent/offsite/place-owner.ts'
import { s3Target } from './agent/offsite/s3-target.ts'
import { type Bucket, createBucket } from './blobs/bucket.ts'
import type { Examination, Finding } from './blobs/s3/examine.ts'
import type { BlobStore } from './blobs/store.ts'
import type { StoredBackup } from './contract/agent/agent-backups.ts'
import type { Recovery } from './contract/backups/backups.ts'
import { isFailure } from './contract/errors.ts'
import { CONNECTIONS_MAX, DNS_CONNECTIONS_MAX } from './contract/fixed-limits.ts'
import { formatS3Place, isS3Url, PlaceFault, parseS3Place, type S3Place } from './contract/offsite-place.ts'
import type { NewServer, Server } from './contract/servers.ts'
import type { SignInLink } from './contract/sessions.ts'
import type { MintedToken } from './contract/tokens.ts'
import { type Config, ConfigFault } from './control/config.ts'
import { openDatabase, sqliteFile } from './control/db/database.ts'
import { lockDataDir } from './control/db/lock.ts'
import { isFresh, migrate } from './control/db/migrate.ts'
import { MIGRATIONS } from './control/db/migrations/index.ts'
import { type DatabaseLock, lockPostgres } from './control/db/postgres-lock.ts'
import { explained } from './control/db/start-faults.ts'
import { makePrivate } from './control/private-files.ts'
import { keyFor, loadSecret } from './control/secrets.ts'
import { type ShowToken, tokenIdOf } from './control/tokens/service.ts'
import { openCertificate } from './http/certificate.ts'
import { isEverywhere, urlOf } from './http/own-url.ts'
import { openPanel } from './http/panel.ts'
import { planDescriptors, readDescriptorLimit } from './kit/files/descriptors.ts'
import { StartFault } from './kit/start-fault.ts'

export { type Config, ConfigFault, readConfig } from './control/config.ts'
export { DataDirInUse } from './control/db/lock.ts'
export { DatabaseInUse } from './control/db/postgres-lock.ts'
export { settleTicks } from './kit/settle-ticks.ts'
export { StartFault } from './kit/start-fault.ts'
export { StoreFault }

export interface Service {
  /** Where it can be reached, without a trailing slash. */
  url: string
  /** The admin token's value when this start has made it; it is not to be had again. */
  newAdminToken: string | null
  /** Where the embedded DNS server answers, if a zone asked for it. */
  dns: { host: string; port: number } | null
  /** Rejects with a sentence when another process has taken over the database. It never resolves. */
  lost: Promise<never>
  stop(): Promise<void>
}

/** Where it listens, and the admin token if this start makes it, while it is not kept yet: a value that nobody has seen is none. */
export type Announce = (started: Pick<Service, 'url' | 'newAdminToken' | 'dns'>) => Promise<void>

export const VERSION: string = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version

/** In a checkout and in the package alike. */
const PANEL_DIR = fileURLToPath(new URL('../panel/dist', import.meta.url))

/** The database, for this process alone and as this version wants it, with the secret that seals what is in it. */
async function openOwnDatabase(config: Config, log: Logger, cleanUp: AsyncDisposableStack) {
  const { dataDir, databaseUrl: url } = config
  let lock: DatabaseLock | undefined
  if (url !== null) {
    lock = await lockPostgres({
      url,
      onBroken: (error) => log.warn({ err: error }, 'the connection that holds the database for us broke'),
      onHeldAgain: () => log.info('the database is ours again'),
    })
    cleanUp.defer(lock.release)
  }
  const onBroken = (error: Error) => log.warn({ err: error }, 'a database connection broke')
  const database = openDatabase({ dataDir, url, onBroken, ...(lock ? { mayUse: lock.isHeld } : {}) })
  cleanUp.defer(database.close)
  const { db, engine } = database
  // There before anything is written that is sealed with it.
  const secret = loadSecret(dataDir, config.secret, await isFresh(db, engine))
  const migrations = await migrate(db, engine, MIGRATIONS)
  if (migrations.length > 0) log.info({ migrations }, 'migrated')
  return { database, secret, lost: lock?.lost ?? new Promise<never>(() => {}) }
}

/** The data directory and what is in it, for this process alone. */
async function openData(config: Config, cleanUp: AsyncDisposableStack, logTo?: DestinationStream) {
  const { dataDir, databaseUrl, logLevel: level } = config
  const dataLock = lockDataDir(dataDir)
  cleanUp.defer(() => dataLock.release())
  const log = logTo ? pino({ level }, logTo) : pino({ level })
  makePrivate(dataDir, databaseUrl === null ? sqliteFile(dataDir) : null, log)
  return { log, ...(await explained(sqliteFile(dataDir), () => openOwnDatabase(config, log, cleanUp))) }
}

interface AssembleOptions extends Pick<StartOptions, 'directory' | 'mirror'> {
  logTo?: DestinationStream | undefined
}

/** Everything but the door, and nothing of it begun. */
async function assemble(
  config: Config,
  cleanUp: AsyncDisposableStack,
  { logTo, directory = PANEL_DIR, mirror: givenMirror }: AssembleOptions = {},
) {
  // Only now: whoever looks at a store, or tests a bucket, does not wait for the service to be read from disk.
  const [{ createAgent }, { SHIPPED_TEMPLATES }, { buildApp }, { openProviders }] = await Promise.all([
    import('./agent/agent.ts'),
    import('./agent/games/templates/index.ts'),
    import('./control/app.ts'),
    import('./control/subdomains/providers.ts'),
  ])
  const certificate = config.tls === null ? undefined : openCertificate(config.tls)
  const { database, secret, lost, log } = await openData(config, cleanUp, logTo)
  const descriptors = planDescriptors(readDescriptorLimit(), {
    connections: CONNECTIONS_MAX,
    dnsConnections: DNS_CONNECTIONS_MAX,
  })
  const clock = { now: () => Date.now() }
  const bucket = bucketOf(config)
  const mirror = givenMirror === undefined ? mirrorOf(config, bucket) : givenMirror
  const agent = createAgent({
    dataDir: config.dataDir,
    trashKeepMs: config.trashHours * 3600_000,
    linksKey: keyFor(secret, 'links'),
    backupKey: config.backupKey,
    backupBytesPerSecond: config.backupBytesPerSecond,
    mirror,
    openOffsite: bucket?.open ?? null,
    filesAtOnce: descriptors.filesAtOnce,
    transfersAtOnce: descriptors.transfers,
    games: {
      users: config.gameUsers,
      allowUnisolated: config.allowUnisolatedGames,
      keepsSupervisorReady: true,
      containerSocket: config.containerSocket,
      keyFiles: config.keyFiles,
    },
    clock,
    log,
  })
  cleanUp.defer(agent.stop)
  const providers = await openProviders(config.zones, {
    host: config.dnsHost,
    port: config.dnsPort,
    directory: join(config.dataDir, 'dns'),
    connections: descriptors.dnsConnections,
  })
  cleanUp.defer(providers.close)
  const panel = openPanel(directory)
  const ownUrl = () => urlOf(config, app.http.server.address() as AddressInfo)
  const { forward } = agent
  const app = await buildApp({
    config,
    version: VERSION,
    database,
    agent,
    forward,
    ownUrl,
    providers,
    templates: SHIPPED_TEMPLATES,
    secret,
    clock,
    log,
    certificate,
    connections: descriptors.connections,
    panel,
    offsite: mirror,
  })
  return { panel, agent, app, providers, ownUrl, lost, log, certificate }
}

/** A link that signs in to the panel once. It is a secret: it goes to whoever sits at the terminal, and to no log. */
export type ShowSignInLink = (link: SignInLink) => Promise<void>

export interface StartOptions {
  /** Where the panel was built; that of this installation by default. */
  directory?: string | undefined
  /** Called once it listens, if there is a panel and a token to sign in with. By default no link is made. */
  showSignInLink?: ShowSignInLink | undefined
  /** Where backups are mirrored; as the settings say by default. */
  mirror?: MirrorTarget | null | undefined
}

export async function startService(
  config: Config,
  announce: Announce = async () => {},
  logTo?: DestinationStream,
  { directory, showSignInLink, mirror }: StartOptions = {},
): Promise<Service> {
  // Whatever fails, what comes before it is undone too: above all the locks.
  await using cleanUp = new AsyncDisposableStack()
  const { agent, app, panel, providers, ownUrl, lost, log, certificate } = await assemble(config, cleanUp, {
    logTo,
    directory,
    mirror,
  })
  cleanUp.defer(app.stop)
  await app.http.register(agent.routes)
  if (config.adminToken !== null) {
    const fault = await app.tokens.ensureConfigured(config.adminToken)
    if (fault) throw new ConfigFault([fault])
  }
  await agent.start()
  await app.start()
  await app.http.listen({ host: config.host, port: config.port })
  cleanUp.defer(() => app.http.close())
  if (certificate) cleanUp.defer(certificate.follow(app.http.server as unknown as HttpsServer, log))
  if (config.publicUrl === null && isEverywhere(app.http.server.address() as AddressInfo)) log.warn(NO_PUBLIC_URL)
  const started = { url: ownUrl(), dns: providers.embedded }
  const newAdminToken = await app.tokens.ensureFirst((token) => announce({ ...started, newAdminToken: token }))
  if (newAdminToken === null) await announce({ ...started, newAdminToken })
  if (showSignInLink && panel) {
    const tokenId = config.adminToken === null ? await app.tokens.findOwner() : tokenIdOf(config.adminToken)
    if (tokenId !== null) await showSignInLink(await app.signIn.createOwnersLink(tokenId, started.url))
  }
  const running = cleanUp.move()
  let stopped: Promise<void> | undefined
  const stop = () => (stopped ??= running.disposeAsync())
  return { ...started, newAdminToken, lost, stop }
}

/** For an owner without a token that can do everything: makes one, on the machine itself and while the service is stopped. */
export async function rescueToken(config: Config, show: ShowToken): Promise<MintedToken> {
  requireInstance(config)
  await using cleanUp = new AsyncDisposableStack()
  const { app } = await assemble({ ...config, zones: [], tls: null }, cleanUp)
  return await app.tokens.rescue(show)
}

/** A mistyped directory must not become an instance of its own. */
function requireInstance({ dataDir, databaseUrl }: Config): void {
  if (!existsSync(databaseUrl === null ? sqliteFile(dataDir) : dataDir))
    throw new StartFault(`There is no Gamekeeper in ${dataDir}. Set GAMEKEEPER_DATA_DIR to its data directory.`)
}

/**
 * Makes a server of a directory, on the machine itself and while the service is stopped. The server comes first: a crash
 * in between leaves it empty and the directory where it was, and never files that no server has.
 */
export async function adoptServer(config: Config, dir: string, request: NewServer): Promise<Server> {
  requireInstance(config)
  await using cleanUp = new AsyncDisposableStack()
  const { app } = await assemble({ ...config, zones: [], tls: null }, cleanUp)
  const source = await requireAdoptable(config.dataDir, dir)
  const server = await app.createServer(request)
  await moveIntoServer(layout(config.dataDir), server.id, source).catch((error: NodeJS.ErrnoException) => {
    const made = `The server ${server.name} (${server.id}) was made and is empty.`
    throw new StartFault(`${source} could not be moved (${error.code}); it is where it was. ${made}`)
  })
  return server
}

export interface RecoveredStore {
  store: { dir: string; storeId: string; isEncrypted: boolean }
  /** Everything that the store holds. */
  backups: StoredBackup[]
  /** The other service that the bucket belonged to before; null where there was none, and for a store on a disk. */
  owner: PlaceOwner | null
  /** What was copied, and what the database has learnt, and why the bucket is not this service's, if it is not; null where the store was only to be looked at. */
  done: { taken: Taken; recovery: Recovery; unclaimed: string | null } | null
}

/** For the day when the database is gone: from a store, wherever it lies, to a data directory that has its backups. */
export async function recoverStore(
  config: Config,
  request: { dir: string; isListOnly: boolean; report: (done: Taken, total: Taken) => void },
): Promise<RecoveredStore> {
  const bucket = isS3Url(request.dir) ? requireBucket(config, request.dir, request.isListOnly) : null
  const found = bucket
    ? await findOffsiteStore(bucket.open, formatS3Place(bucket.place), config.backupKey)
    : await findStore(resolve(request.dir), config.backupKey)
  const { place, format } = found
  const store = { dir: place, storeId: format.storeId, isEncrypted: format.keyCheck !== null }
  const backups = await listStore(found)
  const { mirror } = layout(config.dataDir)
  const owner = bucket ? await reached(() => readOtherOwner(found.blobs, mirror)) : null
  const answer = { store, backups, owner }
  if (request.isListOnly) return { ...answer, done: null }
  await using cleanUp = new AsyncDisposableStack()
  // Only now, and no more than is needed of either: whoever looks at a store does not wait for this to be read from disk.
  const [{ createRecoveryAgent }, { recoverBackups }] = await Promise.all([
    import('./agent/recovery.ts'),
    import('./control/recovery.ts'),
  ])
  const { log, database, secret } = await openData(config, cleanUp)
  const taken = await takeOver(found, answer.backups, layout(config.dataDir).backups, request.report)
  const clock = { now: () => Date.now() }
  const own = bucketOf(config)
  const agent = createRecoveryAgent({ ...config, openOffsite: own?.open ?? null, clock, log })
  cleanUp.defer(agent.stop)
  const recovery = await recoverBackups({ db: database.db, agent, secret, clock, log, isMirrored: own !== null })
  const unclaimed = bucket ? await claimProblem(config, bucket, found.blobs) : null
  return { ...answer, done: { taken, recovery, unclaimed } }
}

/**
 * From now on this service sends to the bucket, and the one that did is refused. Keys that only read recover as well. With
 * the claim the bucket was written to: a service that is started now need not try that at once.
 */
async function claimProblem(config: Config, bucket: Bucket, blobs: BlobStore): Promise<string | null> {
  const target = mirrorOf(config, bucket)
  if (!target) return null
  const deps = { layout: layout(config.dataDir), now: () => Date.now() }
  try {
    await claimPlace(deps, target, blobs, new AbortController().signal)
  } catch (error) {
    if (!isFailure(error)) throw error
    return error.detail
  }
  const where = bucket.whereabouts()
  if (where) keepFound(deps.layout.bucket, bucket, where)
  return null
}

/** How much is sent to measure the speed, and read again. */
const MEASURED_BYTES = 16 * 2 ** 20

/** Tries on the bucket of the settings everything that a mirror needs, and says in words what is missing. */
export async function testOffsite(config: Config, report: (finding: Finding) => void): Promise<Examination> {
  const { offsite, offsiteKeys } = config
  if (!offsite || !offsiteKeys)
    throw new StartFault(
      'There is no bucket to test. Set GAMEKEEPER_OFFSITE as the service has it; see docs/offsite.md.',
    )
  // Only now: a service without a bucket does not wait for its client to be read from disk.
  const { examine } = await import('./blobs/s3/examine.ts')
  return await examine(offsite, offsiteKeys, {
    isAppendOnly: config.isOffsiteAppendOnly,
    measureBytes: MEASURED_BYTES,
    report,
  })
}

/** Null where nothing is mirrored. */
function bucketOf({
  offsite: place,
  offsiteKeys: keys,
  isOffsiteAppendOnly: isAppendOnly,
  dataDir,
}: Config): Bucket | null {
  if (!place || !keys) return null
  const found = readFound(layout(dataDir).bucket, { place, keys })
  return createBucket({ place, keys, isAppendOnly, found })
}

function mirrorOf(config: Config, bucket: Bucket | null): MirrorTarget | null {
  const { offsite: place, offsiteBytesPerSecond: bytesPerSecond, isOffsiteAppendOnly: isAppendOnly, keepLocal } = config
  if (!place || !bucket) return null
  return { ...s3Target(bucket, { place, bytesPerSecond, isAppendOnly }), keepLocal }
}

/** The service reads from the bucket afterwards, so it has to be the one of its settings, unless it is only looked at. */
function requireBucket(config: Config, url: string, isListOnly: boolean): Bucket {
  const { offsite, offsiteKeys: keys } = config
  const asked = parsePlace(url)
  const place = formatS3Place(asked)
  if (!keys)
    throw new StoreFault(
      'not_configured',
      `There are no keys for ${place}. Set GAMEKEEPER_OFFSITE_KEYS_FILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.`,
    )
  if (!isListOnly && !isSamePlace(offsite, asked))
    throw new StoreFault(
      'not_configured',
      `Set GAMEKEEPER_OFFSITE='${place}', here and for the service: the backups stay there and are read from there.`,
    )
  return createBucket({ place: asked, keys })
}

/** By another region it is reached as well. */
const isSamePlace = (a: S3Place | null, b: S3Place) =>
  a !== null && a.bucket === b.bucket && a.prefix === b.prefix && a.endpoint === b.endpoint

function parsePlace(url: string): S3Place {
  try {
    return parseS3Place(url)
  } catch (error) {
    if (!(error instanceof PlaceFault)) throw error
    throw new StoreFault('no_store', `The address of the store ${error.message}.`)
  }
}

const NO_PUBLIC_URL =
  'GAMEKEEPER_PUBLIC_URL is not set: links begin with the address that the request for them was sent to'
