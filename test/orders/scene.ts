// What a pair of operations meets on, and what there is to see of it afterwards.
import assert from 'node:assert/strict'
import { lstat, mkdir, readdir, readFile, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Stage, settle, ZONE } from './stage.ts'

/** What has to be there for an operation to have something to do. */
export type Need = 'backup' | 'locked' | 'newer' | 'trash' | 'schedule' | 'subdomain' | 'token' | 'deleted'

export interface Scene {
  serverId: string
  name: string
  backupId: string
  trashId: string
  scheduleId: string
  subdomainId: string
  token: { id: string; value: string } | undefined
}

const FILES = { 'a.txt': 'a', 'world/level.dat': 'level', 'mods/x.jar': 'jar', 'old.txt': 'old' }
export const QUOTA = 10_000_000
const MADE_AT = new Date('2026-01-01T00:00:00Z')

let sceneCount = 0

export async function prepare(stage: Stage, needs: ReadonlySet<Need>): Promise<Scene> {
  const name = `Castle ${++sceneCount}`
  const made = await stage.call('POST', '/servers', { body: { name, limits: { diskBytes: QUOTA, backups: 5 } } })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  const serverId: string = made.body.id
  for (const [path, content] of Object.entries(FILES)) {
    const file = join(folderOf(stage, serverId), path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, content)
    // An archive has the times too, and those of two scenes are compared.
    for (const path of [file, dirname(file)]) await utimes(path, MADE_AT, MADE_AT)
  }
  const scene: Scene = { serverId, name, backupId: '', trashId: '', scheduleId: '', subdomainId: '', token: undefined }
  const wants = (need: Need) => needs.has(need)
  if (wants('backup') || wants('locked') || wants('newer')) scene.backupId = await backup(stage, serverId, 'kept')
  // So that restoring it changes something.
  if (scene.backupId) await writeFile(join(folderOf(stage, serverId), 'a.txt'), 'a since')
  if (wants('locked')) await ok(stage.call('POST', `/backups/${serverId}/${scene.backupId}/lock`))
  if (wants('newer')) await backup(stage, serverId, 'newer')
  if (wants('newer')) await ok(stage.call('PUT', `/backups/${serverId}/retention`, { body: { keepLast: 1 } }))
  if (wants('trash')) scene.trashId = await trashed(stage, serverId)
  if (wants('schedule')) scene.scheduleId = await scheduled(stage, serverId)
  if (wants('subdomain')) scene.subdomainId = await named(stage, scene)
  if (wants('token')) scene.token = await minted(stage)
  assert.deepEqual(await settle(stage, serverId), [])
  if (wants('deleted')) await ok(stage.call('DELETE', `/servers/${serverId}`, { body: { name } }))
  assert.deepEqual(await settle(stage, serverId), [])
  return scene
}

export const folderOf = (stage: Stage, serverId: string) => join(stage.dataDir, 'servers', serverId, 'files')

// biome-ignore lint/suspicious/noExplicitAny: the body of whatever was asked for
async function ok(reply: ReturnType<Stage['call']>): Promise<any> {
  const { status, body } = await reply
  assert.ok(status < 300, JSON.stringify(body))
  return body
}

async function backup(stage: Stage, serverId: string, name: string): Promise<string> {
  const { id } = await ok(stage.call('POST', `/backups/${serverId}`, { body: { name } }))
  assert.deepEqual(await settle(stage, serverId), [])
  return id
}

async function trashed(stage: Stage, serverId: string): Promise<string> {
  await ok(stage.call('DELETE', `/files/${serverId}`, { body: { files: ['old.txt'] } }))
  return (await ok(stage.call('GET', `/files/${serverId}/trash`))).data[0].id
}

async function scheduled(stage: Stage, serverId: string): Promise<string> {
  const body = { name: 'yearly', cron: '0 0 1 1 *' }
  return (await ok(stage.call('POST', `/backups/${serverId}/schedules`, { body }))).id
}

async function named(stage: Stage, { serverId, name }: Scene): Promise<string> {
  const body = { name: `old-${name.replace(/\W/g, '').toLowerCase()}`, zone: ZONE }
  return (await ok(stage.call('POST', `/subdomains/${serverId}/subdomains`, { body }))).id
}

/** For all servers: limits are changed by nobody who has a token for some of them. */
async function minted(stage: Stage) {
  const { id, token } = await ok(
    stage.call('POST', '/tokens', { body: { name: 'friend', scopes: ['*'], servers: '*' } }),
  )
  return { id, value: token }
}

/** All that can be seen of a server, without ids and times. */
export interface State {
  server: string
  quota: string
  backups: string[]
  stored: string[]
  files: string[]
  trash: string[]
  schedules: string[]
  retention: string
  subdomains: string[]
  jobs: string[]
  activity: string[]
  /** Entries about the token, which belong to no server. */
  token: string[]
  chain: string
}

export async function observe(stage: Stage, { serverId, name, token }: Scene): Promise<State> {
  const get = async (path: string) => {
    const { status, body } = await stage.call('GET', path)
    return status === 200 ? body : { status, data: [] }
  }
  const own = (text: string) => text.replaceAll(name.replace(/\W/g, '').toLowerCase(), '…')
  const { body: server } = await stage.call('GET', `/servers/${serverId}`)
  const usage = await get(`/files/${serverId}/usage`)
  const list = async <T>(path: string, show: (item: T) => string) => (await get(path)).data.map(show).sort()
  const stored = await stage.agent.backups.list({ serverId })
  const retention = await get(`/backups/${serverId}/retention`)
  return {
    server: server.code ?? `${server.status} ${JSON.stringify(server.limits)}`,
    quota: `${usage.quotaBytes ?? usage.status}`,
    backups: await list(`/backups/${serverId}?limit=100`, (it: Named) => `${it.name} ${it.status} ${lockOf(it)}`),
    stored: stored.map(({ backup, damage }) => `${backup?.name} ${backup && lockOf(backup)} ${damage ?? ''}`).sort(),
    files: await filesIn(folderOf(stage, serverId)),
    trash: await list(`/files/${serverId}/trash`, (it: { path: string }) => it.path),
    schedules: await list(`/backups/${serverId}/schedules`, (it: Named) => it.name),
    retention: JSON.stringify(retention.keepLast ?? null),
    subdomains: await list(`/subdomains/${serverId}/subdomains`, (it: Named) => own(`${it.name} ${it.status}`)),
    jobs: await jobsOf(stage, serverId),
    activity: await eventsOf(stage, serverId),
    token: token ? await eventsAbout(stage, token.id) : [],
    chain: await chainOf(stage, serverId),
  }
}

interface Named {
  name: string
  status: string
  isLocked: boolean
}

const lockOf = ({ isLocked }: { isLocked: boolean }) => (isLocked ? 'locked' : 'free')

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  const shown = entries.map(async (entry) => {
    const path = join(entry.parentPath, entry.name)
    const content = entry.isFile() ? ` ${await readFile(path, 'utf8')}` : '/'
    return `${path.slice(folder.length)}${content} ${((await lstat(path)).mode & 0o7777).toString(8)}`
  })
  return (await Promise.all(shown)).sort()
}

/** How often a subdomain is looked after is nobody's business. */
async function jobsOf(stage: Stage, serverId: string): Promise<string[]> {
  const jobs = await stage.look<{ kind: string; status: string; error: string | null }>(
    `select kind, status, error from jobs where server_id = ? and kind <> 'subdomain.sync'`,
    serverId,
  )
  return jobs.map(({ kind, status, error }) => `${kind} ${status} ${codeOf(error)}`.trim()).sort()
}

const codeOf = (error: string | null) => (error === null ? '' : JSON.parse(error).code)

async function eventsOf(stage: Stage, serverId: string): Promise<string[]> {
  const entries = await stage.look<{ event: string }>('select event from activity where chain = ?', serverId)
  return entries.map(({ event }) => event).sort()
}

async function eventsAbout(stage: Stage, tokenId: string): Promise<string[]> {
  const about = `select event from activity where chain = '' and properties like ?`
  return (await stage.look<{ event: string }>(about, `%${tokenId}%`)).map(({ event }) => event).sort()
}

/** Who deletes a server cannot ask for its chain: then all chains are verified together, at the end. */
async function chainOf(stage: Stage, serverId: string): Promise<string> {
  const { status, body } = await stage.call('GET', `/servers/${serverId}/activity/verify`)
  return status === 404 ? 'intact' : body.intact ? 'intact' : JSON.stringify(body.fault)
}
