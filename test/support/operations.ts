// A request for every operation of the contract that is right in every way, and what it needs to be so.
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { missingTools } from '../../scripts/tools.ts'
import type { OPERATIONS } from '../../src/contract/index.ts'
import { BASE_PATH, type Operation } from '../../src/contract/operation.ts'
import { createWorld } from './backups.ts'
import { gameFile } from './games.ts'
import { withImmutable, withoutImmutable } from './immutable.ts'
import type { TestService } from './service.ts'
import { trySignIn } from './sessions.ts'
import { LOCAL_DNS, subdomainCalls } from './subdomains.ts'

export const OPERATIONS_ENV = {
  GAMEKEEPER_ZONES: JSON.stringify([{ zone: 'play.test', provider: 'embedded', target: '203.0.113.7', ttl: 60 }]),
  ...LOCAL_DNS,
}

export interface Wanted {
  params?: Record<string, string>
  query?: Record<string, string>
  body?: Record<string, unknown> | string
}

type OperationId = (typeof OPERATIONS)[number]['id']
type Things = ReturnType<typeof createThings>

/** What requests are about. Each call makes another, so that no request meets what an earlier one has left. */
export function createThings(service: TestService) {
  const world = createWorld(service)
  let count = 0
  let running: Promise<string> | undefined
  const unique = () => `n${process.pid}x${count++}`

  const server = () => world.server({ 'a.txt': 'a', 'world/level.dat': 'level' })
  return {
    unique,
    ownToken: service.adminToken,
    server,
    async backup() {
      const serverId = await server()
      return { serverId, backupId: (await world.backup(serverId)).id }
    },
    async deletedServer() {
      const serverId = await server()
      const { body } = await service.call('DELETE', `/servers/${serverId}`, { body: { name: 'Castle' } })
      await world.jobEnded(serverId, body.id)
      return serverId
    },
    /** Its template has nothing to install. */
    async serverWithGame() {
      const serverId = await server()
      await service.call('PATCH', `/servers/${serverId}`, { body: { game: 'minecraft-java' } })
      return serverId
    },
    /** Its game runs, and reads its console. The same each time: a command more or less is nothing to it. */
    runningServer() {
      running ??= (async () => {
        const serverId = await server()
        copyFileSync(gameFile('plain'), join(world.folder(serverId), 'start'))
        const { status, text } = await service.call('POST', `/servers/${serverId}/power`, { body: { action: 'start' } })
        if (status !== 202) throw new Error(text)
        return serverId
      })()
      return running
    },
    /** With a restore that has stopped at a file that nobody could change then. */
    async stoppedRestore() {
      const { serverId, backupId } = await this.backup()
      await world.write(serverId, { 'a.txt': 'changed' })
      const body = { mode: 'replace', safetyBackup: false }
      await withImmutable(join(world.folder(serverId), 'a.txt'), () => world.restore(serverId, backupId, body))
      return serverId
    },
    /** Without a game, so its rehearsal has failed. */
    async rehearsedBackup() {
      const params = await this.backup()
      const { body } = await service.call('POST', `/backups/${params.serverId}/${params.backupId}/rehearse`, {
        body: {},
      })
      await world.jobEnded(params.serverId, body.id)
      return params
    },
    async schedule() {
      const serverId = await server()
      const body = { name: 'Nightly', cron: '0 4 1 1 *' }
      const { id } = (await service.call('POST', `/backups/${serverId}/schedules`, { body })).body
      return { serverId, scheduleId: id as string }
    },
    async subdomain() {
      const serverId = await server()
      const calls = subdomainCalls(service, () => serverId)
      const { id } = (await calls.create(unique())).body
      await calls.settled(id)
      return { serverId, subdomainId: id as string }
    },
    async trash() {
      const serverId = await server()
      await service.call('DELETE', `/files/${serverId}`, { body: { files: ['a.txt'] } })
      const { data } = (await service.call('GET', `/files/${serverId}/trash`)).body
      return { serverId, trashId: data[0].id as string }
    },
    /** One that has ended. */
    async job() {
      const { serverId, backupId } = await this.backup()
      const { body } = await service.call('POST', `/backups/${serverId}/${backupId}/verify`)
      await world.jobEnded(serverId, body.id)
      return { serverId, jobId: body.id as string }
    },
    async template() {
      const template = ownTemplate(unique())
      await service.call('POST', '/templates', { body: template })
      return { templateId: template.id }
    },
    async invitation() {
      const body = { name: 'Anna', scopes: ['servers:read'], servers: '*' }
      return { invitationId: (await service.call('POST', '/invitations', { body })).body.id as string }
    },
    /** Of the token that asks. */
    async session() {
      const { body } = await trySignIn(service, { token: service.adminToken })
      return { tokenId: body.id as string, sessionId: body.session.id as string }
    },
    token: async () => ({ tokenId: (await service.mint(['servers:read'])).id }),
  }
}

export const ownTemplate = (id: string) => ({
  format: 1,
  id,
  name: 'My game',
  runtimes: ['process'],
  start: { args: ['./start.sh'] },
  stop: [{ signal: 'SIGTERM', timeoutSeconds: 10 }],
})

const onServer = async (things: Things) => ({ params: { serverId: await things.server() } })
const onBackup = async (things: Things) => ({ params: await things.backup() })
const onSchedule = async (things: Things) => ({ params: await things.schedule() })
const onSubdomain = async (things: Things) => ({ params: await things.subdomain() })
const nothing = async () => ({})

const RULES = { keepLast: 5, keepHourly: 1, keepDaily: 1, keepWeekly: 1, keepMonthly: 1 }
const SCHEDULE = {
  action: 'backup',
  timeZone: 'Europe/Berlin',
  namePattern: '{date}',
  ignored: 'logs/',
  isLocked: false,
  onlyIfChanged: true,
  isEnabled: true,
}
const SERVER = {
  description: 'old',
  game: 'minecraft-java',
  variables: {},
  runtime: { kind: 'process' },
  autoRestart: false,
  sleep: null,
  port: 25565,
  limits: { diskBytes: 1_000_000_000, backups: 30, subdomains: 2 },
  labels: { owner: 'anna' },
}

/** What cannot be asked for on this machine, with the reason. */
export const UNASKABLE: Partial<Record<OperationId, string | false>> = {
  finishRestore: withoutImmutable(),
  ...(missingTools().includes('bubblewrap')
    ? { sendCommand: 'bubblewrap is not installed', readRehearsal: 'bubblewrap is not installed' }
    : {}),
}

/** With every optional field given, so that each can be left out in turn. */
const WANTED: Record<OperationId, (things: Things) => Promise<Wanted>> = {
  createServer: async () => ({ body: { name: 'Castle', ...SERVER } }),
  listServers: async () => ({ query: { limit: '10' } }),
  readServer: onServer,
  changeServer: async (things) => ({ ...(await onServer(things)), body: { name: 'Keep', ...SERVER } }),
  deleteServer: async (things) => ({ ...(await onServer(things)), body: { name: 'Castle', purge: false } }),
  planDeletion: onServer,
  undeleteServer: async (things) => ({ params: { serverId: await things.deletedServer() } }),
  powerServer: async (things) => ({ ...(await onServer(things)), body: { action: 'stop' } }),
  installServer: async (things) => ({ params: { serverId: await things.serverWithGame() }, body: { wipe: false } }),
  readConsole: async (things) => ({ ...(await onServer(things)), query: { before: '10', limit: '10', q: 'x' } }),
  sendCommand: async (things) => ({ params: { serverId: await things.runningServer() }, body: { command: 'help' } }),
  readPlayers: onServer,
  readStats: async (things) => ({
    ...(await onServer(things)),
    query: { since: '2026-11-15T00:00:00.000Z', step: '60' },
  }),
  createBackup: async (things) => ({ ...(await onServer(things)), body: { name: 'x', ignored: '', isLocked: true } }),
  previewBackup: async (things) => ({ ...(await onServer(things)), body: { ignored: 'world/' } }),
  listBackups: onServer,
  readBackup: onBackup,
  lockBackup: onBackup,
  unlockBackup: onBackup,
  deleteBackup: onBackup,
  async restoreBackup(things) {
    const params = await things.backup()
    const body = { paths: ['/world'], mode: 'merge', safetyBackup: false, targetServerId: params.serverId, stop: true }
    return { params, body }
  },
  finishRestore: async (things) => ({
    params: { serverId: await things.stoppedRestore() },
    body: { direction: 'back' },
  }),
  verifyBackup: onBackup,
  rehearseBackup: async (things) => ({ ...(await onBackup(things)), body: { timeoutSeconds: 10 } }),
  readRehearsal: async (things) => ({ params: await things.rehearsedBackup() }),
  recoverBackups: nothing,
  downloadBackup: async (things) => ({ ...(await onBackup(things)), query: { format: 'zip' } }),
  requestBackupDownload: async (things) => ({ ...(await onBackup(things)), body: { format: 'zip' } }),
  browseBackup: async (things) => ({ ...(await onBackup(things)), query: { path: '/world' } }),
  readBackupFile: async (things) => ({ ...(await onBackup(things)), query: { path: '/a.txt' } }),
  listFileVersions: async (things) => ({ ...(await onServer(things)), query: { path: '/a.txt' } }),
  async compareBackups(things) {
    const { serverId, backupId } = await things.backup()
    return { params: { serverId }, query: { from: backupId } }
  },
  readRetention: onServer,
  setRetention: async (things) => ({ ...(await onServer(things)), body: RULES }),
  applyRetention: async (things) => ({ ...(await onServer(things)), body: { dryRun: true } }),
  listSchedules: onServer,
  createSchedule: async (things) => ({
    ...(await onServer(things)),
    body: { name: 'Nightly', cron: '0 4 1 1 *', ...SCHEDULE },
  }),
  readSchedule: onSchedule,
  changeSchedule: async (things) => ({
    ...(await onSchedule(things)),
    body: { name: 'Weekly', cron: '0 4 1 1 *', ...SCHEDULE },
  }),
  deleteSchedule: onSchedule,
  readOffsite: nothing,
  pruneOffsite: async () => ({ body: { bytes: 0 } }),
  claimOffsite: nothing,
  readDisks: nothing,
  deleteFiles: async (things) => ({ ...(await onServer(things)), body: { root: '/', files: ['a.txt'] } }),
  createFolder: async (things) => ({ ...(await onServer(things)), body: { name: 'mods', path: '/' } }),
  copyFile: async (things) => ({ ...(await onServer(things)), body: { location: '/a.txt' } }),
  requestUpload: onServer,
  listFiles: async (things) => ({ ...(await onServer(things)), query: { path: '/world' } }),
  readContent: async (things) => ({ ...(await onServer(things)), query: { path: '/a.txt' } }),
  writeContent: async (things) => ({ ...(await onServer(things)), query: { path: '/new.txt' }, body: 'bytes' }),
  moveFiles: async (things) => ({
    ...(await onServer(things)),
    body: { moves: [{ from: '/a.txt', to: '/b.txt' }], overwrite: false },
  }),
  setFileMode: async (things) => ({
    ...(await onServer(things)),
    body: { root: '/', files: ['a.txt'], mode: '0600' },
  }),
  requestDownload: async (things) => ({ ...(await onServer(things)), query: { path: '/a.txt' } }),
  packFiles: async (things) => ({
    ...(await onServer(things)),
    body: { root: '/', files: ['world'], format: 'zip', target: '/world.zip' },
  }),
  unpackFile: async (things) => ({
    ...(await onServer(things)),
    body: { path: '/a.txt', directory: '/', overwrite: false },
  }),
  pullFile: async (things) => ({
    ...(await onServer(things)),
    body: { url: 'http://127.0.0.1:9/x', directory: '/', name: 'x', overwrite: false },
  }),
  searchFiles: async (things) => ({ ...(await onServer(things)), query: { q: 'level' } }),
  listTrash: onServer,
  restoreTrash: async (things) => ({ params: await things.trash() }),
  emptyTrash: onServer,
  readUsage: onServer,
  listZones: onServer,
  listSubdomains: onServer,
  readSubdomain: onSubdomain,
  createSubdomain: async (things) => ({
    ...(await onServer(things)),
    body: { name: things.unique(), zone: 'play.test' },
  }),
  deleteSubdomain: onSubdomain,
  checkDns: async () => ({ body: { repair: false } }),
  listTemplates: nothing,
  createTemplate: async (things) => ({ body: JSON.stringify(ownTemplate(things.unique())) }),
  readTemplate: async (things) => ({ params: await things.template() }),
  deleteTemplate: async (things) => ({ params: await things.template() }),
  listActivity: onServer,
  verifyActivity: onServer,
  listAllActivity: nothing,
  verifyAllActivity: nothing,
  listJobs: onServer,
  readJob: async (things) => ({ params: await things.job() }),
  cancelJob: async (things) => ({ params: await things.job() }),
  createToken: async () => ({ body: { name: 'x', scopes: ['servers:read'], servers: '*', expiresAt: null } }),
  listTokens: nothing,
  readOwnToken: nothing,
  revokeToken: async (things) => ({ params: await things.token() }),
  createInvitation: async () => ({ body: { name: 'Anna', scopes: ['servers:read'], servers: '*' } }),
  listInvitations: nothing,
  revokeInvitation: async (things) => ({ params: await things.invitation() }),
  createSession: async (things) => ({ body: { token: things.ownToken } }),
  readSession: nothing,
  endSession: nothing,
  createSignInLink: nothing,
  listSessions: nothing,
  endOtherSessions: nothing,
  endOneSession: async (things) => ({ params: { sessionId: (await things.session()).sessionId } }),
  listTokenSessions: async (things) => ({ params: await things.token() }),
  endTokenSessions: async (things) => ({ params: await things.token() }),
  endTokenSession: async (things) => ({ params: await things.session() }),
}

export function wantedFor({ id }: Operation, things: Things): Promise<Wanted> {
  const wanted = WANTED[id]
  if (!wanted) throw new Error(`test/support/operations.ts has no request for ${id}`)
  return wanted(things)
}

export function addressOf({ path }: Operation, { params = {}, query = {} }: Wanted): string {
  const search = new URLSearchParams(query).toString()
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
  return BASE_PATH + filled + (search === '' ? '' : `?${search}`)
}
