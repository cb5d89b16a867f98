// Control, wired by hand: builds everything, listens to nothing.
import { access } from 'node:fs/promises'
import type { FastifyInstance, RouteOptions } from 'fastify'
import type { Logger } from 'pino'
import type { Agent } from '../contract/agent.ts'
import type { Template } from '../contract/games/template-format.ts'
import { NewServer, type Server } from '../contract/servers.ts'
import { answerBeforeTheEnd, takeBodiesAsStreams } from '../http/bodies.ts'
import type { Certificate } from '../http/certificate.ts'
import type { Forward } from '../http/forward.ts'
import type { Panel } from '../http/panel.ts'
import { createHttpServer } from '../http/server.ts'
import { createSignedLinks } from '../http/signed-links.ts'
import { validatorOf } from '../http/validation.ts'
import { StartFault } from '../kit/start-fault.ts'
import { createFactKeeper } from './activity/facts.ts'
import { activityRoutes } from './activity/routes.ts'
import { createActivity } from './activity/service.ts'
import { createBackupSlice } from './backups/index.ts'
import type { OffsitePlace } from './backups/offsite/service.ts'
import { backupContentRoutes, backupPlanRoutes, backupRoutes, offsiteRoutes } from './backups/routes.ts'
import type { Config } from './config.ts'
import { type OpenDatabase, pingDatabase, probeDatabase } from './db/database.ts'
import { instanceIdOf } from './db/instance.ts'
import { createChanges } from './db/row-changes.ts'
import { contentRoutes, fileRoutes } from './files/routes.ts'
import { createFiles } from './files/service.ts'
import { createFileWork } from './files/work.ts'
import { SYSTEM } from './http/actor.ts'
import { createAuth } from './http/auth.ts'
import { createBaseUrl, createIsOwnOrigin } from './http/base-url.ts'
import { createBodyPace } from './http/body-pace.ts'
import { diskRoutes } from './http/disk-routes.ts'
import { describeRoutes, documentRoutes } from './http/document/docs.ts'
import { frontPage } from './http/document/front-page.ts'
import { atMostOncePer, countRequests, createMetrics, type HealthCheck, healthRoutes } from './http/health.ts'
import { createIdempotency } from './http/idempotency.ts'
import { isRefusedLargeBody, takeBodiesAsBytes } from './http/json-body.ts'
import { createCursors } from './http/paging.ts'
import type { Api } from './http/route.ts'
import { createSessionCookies } from './http/session-cookie.ts'
import { createStreams } from './http/streams/open-streams.ts'
import { createJobs } from './jobs/runner.ts'
import { keyFor } from './secrets.ts'
import { createDeletion } from './servers/deletion.ts'
import { createQuotas } from './servers/disk-quota.ts'
import { createGameMetrics } from './servers/game-metrics.ts'
import { gameRoutes } from './servers/game-routes.ts'
import { createGames } from './servers/games.ts'
import { createInstalls } from './servers/install.ts'
import { createServerJobs } from './servers/jobs.ts'
import { serverRoutes } from './servers/routes.ts'
import { createServers } from './servers/service.ts'
import { createSleepSettings } from './servers/sleep.ts'
import { createStartWishes } from './servers/start-wishes.ts'
import { createStats } from './servers/stats.ts'
import type { Providers } from './subdomains/providers.ts'
import { subdomainRoutes } from './subdomains/routes.ts'
import { createSubdomains } from './subdomains/service.ts'
import { templateRoutes } from './templates/routes.ts'
import { createTemplates } from './templates/service.ts'
import { createInvitations } from './tokens/invitations.ts'
import { tokenRoutes } from './tokens/routes.ts'
import { createTokens, type Tokens } from './tokens/service.ts'
import { sessionRoutes } from './tokens/session-routes.ts'
import { createSessions } from './tokens/sessions.ts'
import { createSignIn, type SignIn } from './tokens/sign-in.ts'
import { createUpkeep } from './upkeep.ts'

export interface AppDeps {
  config: Config
  version: string
  database: OpenDatabase
  agent: Agent
  providers: Providers
  /** Those that come with us. */
  templates: readonly Template[]
  /** Hands a request on to the agent's own door. */
  forward: Forward
  /** The address that we listen on, or the configured one. */
  ownUrl: () => string
  secret: Buffer
  clock: { now(): number }
  log: Logger
  /** Speaks TLS with it; plain HTTP by default. */
  certificate?: Certificate | undefined
  /** Of HTTP at once; as many as a process with descriptors in plenty has by default. */
  connections?: number
  /** Null where none was built. */
  panel?: Panel | null
  /** Where the agent mirrors backups; nowhere by default. */
  offsite?: OffsitePlace | null
}

export interface App {
  http: FastifyInstance
  /** Every route that it serves, for those who check them. */
  routes: readonly RouteOptions[]
  tokens: Tokens
  signIn: SignIn
  /** A new server, as `POST /servers` makes it, for whoever is at the machine itself. Nothing need have been started. */
  createServer(request: NewServer): Promise<Server>
  /** Takes up work that a crash has cut short, and begins the regular upkeep. */
  start(): Promise<void>
  /** Ends streams, parks jobs and waits for what is under way. The HTTP side is closed by then. */
  stop(): Promise<void>
}

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** Anybody may ask whether we are ready, and a probe costs a sync. */
const PROBES_KEPT_MS = SECOND_MS
const FINISHED_JOBS_KEPT_MS = 7 * DAY_MS

export async function buildApp(deps: AppDeps): Promise<App> {
  const { config, version, database, agent, secret, clock, log, panel = null } = deps
  const { db } = database
  const cursors = createCursors(keyFor(secret, 'cursors'))
  const streams = createStreams({ clock })
  const changes = createChanges()
  const jobs = createJobs({ db, changes, clock, log })
  const idempotency = createIdempotency({ db, clock })
  const bodyPace = createBodyPace(config.requestsPerMinute > 0)
  const activity = createActivity({ db, key: keyFor(secret, 'activity'), cursors, changes, clock })
  const linksEnding = new Set<Promise<void>>()
  const endLinks = (tokenId: string) => {
    const ending = agent.links.revoke({ tokenIds: [tokenId] }).catch((error: unknown) => {
      log.error({ err: error, tokenId }, 'links of a revoked token could not be ended; they are at the next start')
    })
    linksEnding.add(ending)
    void ending.finally(() => linksEnding.delete(ending))
  }
  const tokens = createTokens({ db, activity, streams, cursors, clock, onRevoked: endLinks })
  const sessions = createSessions({ db, activity, tokens, streams, cursors, clock })
  const invitations = createInvitations({ db, activity, cursors, clock })
  const signIn = createSignIn({ db, sessions, invitations, clock })
  const parts = () => [subdomains.part, backups.backups.part]
  const templates = createTemplates({ db, activity, cursors, clock, shipped: deps.templates })
  const quotas = createQuotas({ db, agent, log })
  const sleeps = createSleepSettings({ db, agent, log })
  const servers = createServers({
    db,
    agent,
    activity,
    cursors,
    clock,
    quotas,
    sleeps,
    templates,
    parts,
  })
  const factKeeper = createFactKeeper({ db, facts: agent.facts, activity, idempotency, log })
  const wishes = createStartWishes({ db, activity, jobs })
  const installs = createInstalls({ db, agent, activity, jobs, templates, wishes })
  const games = createGames({ db, agent, facts: factKeeper, templates, installs, wishes, sleeps, log })
  const deletion = createDeletion({
    db,
    agent,
    activity,
    jobs,
    facts: factKeeper,
    streams,
    quotas,
    clock,
    log,
    keepMs: config.deletedServerDays * DAY_MS,
    parts,
  })
  const links = createSignedLinks(keyFor(secret, 'links'), clock)
  const files = createFiles({
    db,
    agent,
    facts: factKeeper,
    links,
    cursors,
    clock,
    maxUploadBytes: config.maxUploadBytes,
  })
  const fileWork = createFileWork({ db, agent, activity, jobs })
  const backups = createBackupSlice({
    db,
    agent,
    activity,
    jobs,
    changes,
    servers,
    games,
    links,
    cursors,
    clock,
    log,
    atOnce: config.backupsAtOnce,
    offsite: deps.offsite ?? null,
  })
  const subdomains = createSubdomains({
    db,
    activity,
    jobs,
    cursors,
    clock,
    log,
    zones: config.zones,
    providers: deps.providers,
    instanceId: await instanceIdOf(db),
    holdNameMs: config.nameHoldDays * DAY_MS,
  })
  const serverJobs = createServerJobs({ db, jobs, activity, changes, cursors })
  const cookies = createSessionCookies(config.publicUrl)
  const isOwnOrigin = createIsOwnOrigin(config.publicUrl, deps.ownUrl)
  const auth = createAuth({
    identify: tokens.identify,
    identifySession: sessions.identify,
    cookies,
    isOwnOrigin,
    recordDenied: activity.recordDenied,
    requestsPerMinute: config.requestsPerMinute,
  })
  const metrics = createMetrics(streams.count)
  backups.measure(metrics.registry)

  const http = createHttpServer({
    logger: log,
    trustedProxies: config.trustedProxies,
    https: config.publicUrl?.startsWith('https:') ?? false,
    corsOrigins: config.corsOrigins,
    certificate: deps.certificate,
    ...(panel ? { answerElse: panel.answer } : {}),
    ...(deps.connections === undefined ? {} : { connections: deps.connections }),
  })
  const baseUrlOf = createBaseUrl(config.publicUrl, deps.ownUrl)
  const routes: RouteOptions[] = []
  http.addHook('onRoute', (route) => void routes.push(route))
  await describeRoutes(http, config.publicUrl, version)
  countRequests(http, metrics)
  await http.register(async (app) => {
    takeBodiesAsBytes(app)
    answerBeforeTheEnd(app, isRefusedLargeBody)
    const api: Api = { app, auth, idempotency, bodyPace, baseUrlOf }
    serverRoutes(api, { servers, deletion, jobs: serverJobs, streams })
    gameRoutes(api, { games, installs, stats: createStats({ db, agent }), streams })
    fileRoutes(api, files, fileWork)
    backupRoutes(api, backups, streams)
    backupPlanRoutes(api, backups)
    offsiteRoutes(api, backups)
    diskRoutes(api, agent, cursors)
    subdomainRoutes(api, subdomains)
    templateRoutes(api, templates)
    activityRoutes(api, { db, activity, streams })
    tokenRoutes(api, tokens)
    sessionRoutes(api, { tokens, sessions, signIn, invitations, cookies, isOwnOrigin })
  })
  await http.register(async (app) => {
    takeBodiesAsStreams(app)
    answerBeforeTheEnd(app)
    contentRoutes({ app, auth, idempotency, bodyPace, baseUrlOf }, files, deps.forward, config.maxUploadBytes)
    backupContentRoutes({ app, auth, idempotency, bodyPace, baseUrlOf }, backups, deps.forward)
  })
  const checks = [...readinessChecks(config, database, agent), backups.health, ...backups.offsite.health]
  healthRoutes(http, { auth, metrics, serverMetrics: createGameMetrics(agent.games), checks, log })
  documentRoutes(http)
  frontPage(http, version, panel)
  // Streams end first: a server that waits for its answers to end would wait for ever.
  http.addHook('preClose', async () => streams.endAll())

  const upkeep = createUpkeep(
    [
      { name: 'token use', everyMs: MINUTE_MS, run: tokens.flushUse },
      { name: 'session use', everyMs: MINUTE_MS, run: sessions.flushUse },
      { name: 'ended sessions', everyMs: HOUR_MS, run: sessions.purge },
      { name: 'refusals', everyMs: MINUTE_MS, run: () => activity.flushDenied() },
      { name: 'disk usage', everyMs: 5 * MINUTE_MS, run: servers.measure },
      { name: 'deleted servers', everyMs: MINUTE_MS, atStart: true, run: deletion.purgeExpired },
      { name: 'schedules', everyMs: SECOND_MS, run: backups.schedules.tick },
      { name: 'scrub', everyMs: HOUR_MS, run: backups.verifying.upkeep },
      { name: 'store of backups', everyMs: DAY_MS, run: backups.reconciling.reconcile },
      { name: 'paused games', everyMs: MINUTE_MS, run: backups.pauses.reconcile },
      { name: 'off-site store', everyMs: HOUR_MS, run: async () => backups.offsite.wake() },
      { name: 'zones', everyMs: 5 * MINUTE_MS, atStart: true, run: subdomains.reconcile },
      { name: 'idempotency keys', everyMs: HOUR_MS, run: idempotency.purge },
      { name: 'finished jobs', everyMs: HOUR_MS, run: () => jobs.purge(clock.now() - FINISHED_JOBS_KEPT_MS) },
      {
        name: 'activity retention',
        everyMs: HOUR_MS,
        run: () => activity.purge(clock.now() - config.activityRetentionDays * DAY_MS),
      },
    ],
    log,
  )

  return {
    http,
    routes,
    tokens,
    signIn,
    async createServer(request) {
      requireValid(request)
      return await servers.create(SYSTEM, request)
    },
    async start() {
      await servers.sweep()
      await quotas.applyAll()
      await agent.links.revoke({ tokenIds: await tokens.recentlyRevoked() })
      await backups.offsite.takeUp()
      await backups.reconciling.reconcile()
      await backups.reconciling.failStranded()
      await factKeeper.start()
      games.start()
      await jobs.start()
      backups.offsite.start()
      upkeep.start()
    },
    async stop() {
      await Promise.all([
        jobs.stop(),
        upkeep.stop(),
        backups.offsite.stop(),
        factKeeper.stop(),
        games.stop(),
        ...linksEnding,
      ])
      await Promise.all([tokens.flushUse(), sessions.flushUse()]).catch((error: unknown) => {
        log.warn({ err: error }, 'when tokens and sessions were last used could not be written')
      })
      await activity.flushDenied(true).catch((error: unknown) => {
        log.warn({ err: error }, 'refusals that were counted could not be recorded')
      })
    },
  }
}

/** What a route does for those who come by one. */
function requireValid(request: NewServer): void {
  const validate = validatorOf('body').compile(NewServer)
  if (validate(request)) return
  const faults = (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
  throw new StartFault(`The server cannot be made: ${faults.join(', ')}.`)
}

function readinessChecks(config: Config, { db, file }: OpenDatabase, agent: Agent): HealthCheck[] {
  const probeRows = atMostOncePer(PROBES_KEPT_MS, () => probeDatabase(db))
  const probeDisks = atMostOncePer(PROBES_KEPT_MS, () => agent.disks.probe())
  return [
    {
      name: 'database',
      async check() {
        // An open file goes on answering after it was deleted, and everything written to it is lost.
        if (file !== null) await access(file)
        await pingDatabase(db)
        await probeRows()
        return undefined
      },
    },
    {
      name: 'dataDirectory',
      async check() {
        await access(config.dataDir)
        await probeDisks()
        return undefined
      },
    },
  ]
}
