// Every operation that changes a server or one of its backups, as data.
import { randomBytes } from 'node:crypto'
import type { Need, Scene } from './scene.ts'
import { activeJobs, type Reply, type Stage, ZONE } from './stage.ts'

export interface Part {
  stage: Stage
  scene: Scene
  /** A or B, so that two of the same operation can ask for different things. */
  who: string
  /** As somebody whose token may be revoked meanwhile, where the other one of the pair does that. */
  call: Stage['call']
}

export interface Operation {
  needs: readonly Need[]
  /** Answers in the words of `answerOf`. */
  run(part: Part): Promise<string>
}

export function answerOf({ status, body }: Reply): string {
  return status < 300 ? String(status) : `${status} ${body?.code ?? JSON.stringify(body)}`
}

type Path = string | ((scene: Scene) => string)
type Body = object | ((part: Part) => object)

/** One request. */
function request(method: string, path: Path, needs: readonly Need[] = [], body?: Body): Operation {
  return {
    needs,
    async run(part) {
      const address = typeof path === 'string' ? path : path(part.scene)
      const sent = typeof body === 'function' ? body(part) : body
      return answerOf(await part.call(method, address, sent ? { body: sent } : {}))
    },
  }
}

const backups = (rest: string) => (scene: Scene) => `/backups/${scene.serverId}${rest}`
const backup = (rest: string) => (scene: Scene) => `/backups/${scene.serverId}/${scene.backupId}${rest}`
const files = (rest: string) => (scene: Scene) => `/files/${scene.serverId}${rest}`
const server = (scene: Scene) => `/servers/${scene.serverId}`

const cancelJob: Operation = {
  needs: [],
  async run({ stage, scene, call }) {
    const cancellable = ['backup', 'restore', 'verify', 'rehearse', 'pack']
    const job = (await activeJobs(stage, scene.serverId)).find(({ kind }) => cancellable.includes(kind))
    const answer = job ? answerOf(await call('DELETE', `${server(scene)}/jobs/${job.id}`)) : '409 job_finished'
    return answer === '409 job_finished' ? 'nothing to cancel' : answer
  },
}

const putContent: Operation = {
  needs: [],
  async run({ scene, who, call }) {
    const payload = { type: 'application/octet-stream', bytes: Buffer.from(`put by ${who}`) }
    return answerOf(await call('PUT', files('/content?path=/a.txt')(scene), { payload }))
  },
}

const upload: Operation = {
  needs: [],
  async run({ scene, who, call }) {
    const link = await call('GET', files('/upload')(scene))
    if (link.status !== 200) return answerOf(link)
    const boundary = randomBytes(8).toString('hex')
    const head = `--${boundary}\r\ncontent-disposition: form-data; name="files"; filename="up.txt"\r\n\r\n`
    const bytes = Buffer.from(`${head}sent by ${who}\r\n--${boundary}--\r\n`)
    const payload = { type: `multipart/form-data; boundary=${boundary}`, bytes }
    return answerOf(await call('POST', link.body.url, { payload }))
  },
}

const revokeToken: Operation = {
  needs: ['token'],
  run: async ({ stage, scene }) => answerOf(await stage.call('DELETE', `/tokens/${scene.token?.id}`)),
}

const subdomain = ({ scene, who }: Part) => ({
  name: `${who}-${scene.name.replace(/\W/g, '')}`.toLowerCase(),
  zone: ZONE,
})

export const OPERATIONS: Record<string, Operation> = {
  'create backup': request('POST', backups(''), [], ({ who }) => ({ name: `by ${who}` })),
  'create locked backup': request('POST', backups(''), [], ({ who }) => ({ name: `by ${who}`, isLocked: true })),
  'lock backup': request('POST', backup('/lock'), ['backup']),
  'unlock backup': request('DELETE', backup('/lock'), ['locked']),
  'delete backup': request('DELETE', backup(''), ['backup']),
  restore: request('POST', backup('/restore'), ['backup'], { mode: 'replace' }),
  'restore one file': request('POST', backup('/restore'), ['backup'], { paths: ['/a.txt'], mode: 'merge' }),
  'verify backup': request('POST', backup('/verify'), ['backup']),
  'rehearse backup': request('POST', backup('/rehearse'), ['backup']),
  'cancel job': cancelJob,
  'set retention': request('PUT', backups('/retention'), [], ({ who }) => ({ keepLast: who === 'A' ? 1 : 2 })),
  'apply retention': request('POST', backups('/retention/apply'), ['newer'], { dryRun: false }),
  'create schedule': request('POST', backups('/schedules'), [], { name: 'daily', cron: '0 4 * * *' }),
  'change schedule': request(
    'PATCH',
    (scene) => backups(`/schedules/${scene.scheduleId}`)(scene),
    ['schedule'],
    ({ who }) => ({ name: `renamed by ${who}` }),
  ),
  'delete schedule': request('DELETE', (scene) => backups(`/schedules/${scene.scheduleId}`)(scene), ['schedule']),
  'delete server': request('DELETE', server, [], ({ scene }) => ({ name: scene.name })),
  'purge server': request('DELETE', server, [], ({ scene }) => ({ name: scene.name, purge: true })),
  'undelete server': request('POST', (scene) => `${server(scene)}/undelete`, ['deleted']),
  'change quota': request('PATCH', server, [], ({ who }) => ({ limits: { diskBytes: who === 'A' ? 2e6 : 3e6 } })),
  'change backup limit': request('PATCH', server, [], { limits: { backups: 1 } }),
  'create subdomain': request('POST', ({ serverId }) => `/subdomains/${serverId}/subdomains`, [], subdomain),
  'delete subdomain': request(
    'DELETE',
    ({ serverId, subdomainId }) => `/subdomains/${serverId}/subdomains/${subdomainId}`,
    ['subdomain'],
  ),
  'make folder': request('POST', files('/folder'), [], { name: 'new' }),
  'delete files': request('DELETE', files(''), [], { files: ['a.txt', 'world'] }),
  'move file': request('POST', files('/move'), [], ({ who }) => ({
    moves: [{ from: '/a.txt', to: `/moved by ${who}.txt` }],
  })),
  'change mode': request('POST', files('/mode'), [], ({ who }) => ({
    files: ['a.txt', 'world/level.dat'],
    mode: who === 'A' ? '0600' : '0640',
  })),
  'copy file': request('POST', files('/copy'), [], { location: '/a.txt' }),
  'pack files': request('POST', files('/pack'), [], { files: ['world', 'mods'], target: '/packed.zip' }),
  'restore from trash': request('POST', (scene) => files(`/trash/${scene.trashId}/restore`)(scene), ['trash']),
  'empty trash': request('DELETE', files('/trash'), ['trash']),
  'put content': putContent,
  upload,
  'revoke token': revokeToken,
}

/** Pairs that are not played, and why. */
export const NEVER_MEET: readonly { why: string; pair: readonly [RegExp, RegExp] }[] = [
  { why: 'A server with a locked backup is not deleted.', pair: [/^unlock backup$/, /^undelete server$/] },
  {
    why: 'It has no job that could be cancelled.',
    pair: [
      /^cancel job$/,
      /^(?!create backup|create locked backup|restore$|restore one file|verify backup|rehearse backup|pack files|delete server|purge server)/,
    ],
  },
]
