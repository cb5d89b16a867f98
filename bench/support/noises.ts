// What a noisy tenant does: each is what one of its requests costs most by, over and over.
import { closeSync, ftruncateSync, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { emptyZip } from './empty-zip.ts'
import type { Tenant } from './tenants.ts'

export interface Noise {
  /** Once, before anything is measured. */
  prepare?(noisy: Tenant): Promise<void>
  /** One request; answers its status. */
  request(noisy: Tenant, index: number, signal: AbortSignal): Promise<number>
  /** How many of its requests may be under way; 100 by default. */
  atOnce?: number
}

const TEXT_FILES = 500
const BIG_DIRECTORY = 50_000
const TRASHED = 10_000
const SPARSE_BYTES = 4 * 1024 ** 4
const ZIP_ENTRIES = 300_000
const MERGED_FILES = 3000

/** Made once: what it costs to make noise is not to be measured. */
const PADDING = Array.from({ length: 12_000 }, (_, at) => `x-padding-${at}: ${'y'.repeat(60)}`).join('\r\n')
const HEAD = 'content-disposition: form-data; name="files"; filename="f"'
const FORM = Buffer.from(`--x\r\n${HEAD}\r\n${PADDING}\r\n\r\nx\r\n--x--\r\n`)
const FORM_TYPE = { 'content-type': 'multipart/form-data; boundary=x' }
const LONG_NAMES = Array.from({ length: 1000 }, (_, at) => `${'n'.repeat(900)}-${at}`)
const BIG_BODY = Buffer.from(JSON.stringify({ root: '/', files: LONG_NAMES }))

const JSON_TYPE = { 'content-type': 'application/json' }

const status = async (reply: Promise<{ status: number }>) => (await reply).status
const contentOf = ({ serverId }: Tenant, path: string) => `/files/${serverId}/content?path=${encodeURIComponent(path)}`

function fill(folder: string, files: number, content: string | Buffer): void {
  mkdirSync(folder, { recursive: true })
  for (let file = 0; file < files; file++) writeFileSync(join(folder, `${file}.txt`), content)
}

async function uploadUrl({ call, serverId }: Tenant): Promise<string> {
  return JSON.parse((await call('GET', `/files/${serverId}/upload`)).text).url
}

let link = ''
let backupId = ''

async function backUp({ call, serverId }: Tenant): Promise<string> {
  const { id } = JSON.parse((await call('POST', `/backups/${serverId}`, { body: {} })).text)
  for (;;) {
    const { status: state } = JSON.parse((await call('GET', `/backups/${serverId}/${id}`)).text)
    if (state !== 'queued' && state !== 'running') return id
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

export const NOISES: Record<string, Noise> = {
  'deep paths': {
    request: ({ call, serverId }, index, signal) => {
      const path = `/${Array.from({ length: 1500 }, () => 'a').join('/')}${index}`
      return status(call('POST', `/files/${serverId}/folder`, { body: { name: 'b', path }, signal }))
    },
  },
  'content searches': {
    prepare: async ({ folder }) => fill(join(folder, 'logs'), TEXT_FILES, 'an entity of the overworld\n'.repeat(8000)),
    request: ({ call, serverId }, _index, signal) =>
      status(call('GET', `/files/${serverId}/search?content=true&q=nowhere`, { signal })),
  },
  'huge zip directories': {
    prepare: async ({ folder }) => writeFileSync(join(folder, 'huge.zip'), emptyZip(ZIP_ENTRIES)),
    request: ({ call, serverId }, index, signal) =>
      status(
        call('POST', `/files/${serverId}/unpack`, { body: { path: '/huge.zip', directory: `/z${index}` }, signal }),
      ),
    atOnce: 8,
  },
  'part headers': {
    async prepare(noisy) {
      link = await uploadUrl(noisy)
    },
    request: ({ call }, _index, signal) => status(call('POST', link, { body: FORM, headers: FORM_TYPE, signal })),
    atOnce: 8,
  },
  merges: {
    async prepare({ folder, call, serverId }) {
      fill(join(folder, 'tree/deep/er'), MERGED_FILES, 'x')
      const body = { root: '/', files: ['tree'], target: '/tree.tar', format: 'tar' }
      await call('POST', `/files/${serverId}/pack`, { body })
      await new Promise((resolve) => setTimeout(resolve, 3000))
    },
    request: ({ call, serverId }, _index, signal) => {
      const body = { path: '/tree.tar', directory: '/', overwrite: true }
      return status(call('POST', `/files/${serverId}/unpack`, { body, signal }))
    },
    atOnce: 8,
  },
  'pages of the trash': {
    async prepare({ folder, call, serverId }) {
      const names = Array.from({ length: TRASHED }, (_, index) => `${index}.txt`)
      fill(join(folder, 'old'), TRASHED, '')
      for (let at = 0; at < TRASHED; at += 100)
        await call('DELETE', `/files/${serverId}`, { body: { root: '/old', files: names.slice(at, at + 100) } })
    },
    request: ({ call, serverId }, _index, signal) =>
      status(call('GET', `/files/${serverId}/trash?limit=100`, { signal })),
  },
  expiry: {
    async prepare(noisy) {
      writeFileSync(join(noisy.folder, 'a.txt'), 'a')
      for (let count = 0; count < 30; count++) await backUp(noisy)
    },
    request: ({ call, serverId }, _index, signal) =>
      status(call('POST', `/backups/${serverId}/retention/apply`, { body: { dryRun: true }, signal })),
  },
  'backups of sparse files': {
    async prepare({ folder }) {
      const fd = openSync(join(folder, 'sparse'), 'w')
      ftruncateSync(fd, SPARSE_BYTES)
      closeSync(fd)
    },
    request: ({ call, serverId }, _index, signal) => status(call('POST', `/backups/${serverId}`, { body: {}, signal })),
  },
  'tus uploads begun': {
    async prepare(noisy) {
      link = await uploadUrl(noisy)
    },
    request: ({ call }, index, signal) => {
      const headers = {
        'tus-resumable': '1.0.0',
        'upload-length': '1000',
        'upload-metadata': `filename ${Buffer.from(`f${index}`).toString('base64')}`,
      }
      return status(call('POST', link, { headers, signal }))
    },
  },
  'slow readers of activity': {
    async prepare(noisy) {
      for (let index = 0; index < 500; index++)
        await noisy.call('PUT', contentOf(noisy, `/${'n'.repeat(200)}${index}`), { body: 'x' })
    },
    request: readSlowly,
    atOnce: 40,
  },
  'big lists': {
    prepare: async ({ folder }) => fill(join(folder, 'many'), BIG_DIRECTORY, ''),
    request: ({ call, serverId }, _index, signal) =>
      status(call('GET', `/files/${serverId}?path=/many&sort=size&limit=100`, { signal })),
  },
  'ranges of archives': {
    async prepare(noisy) {
      fill(join(noisy.folder, 'world'), 200, Buffer.alloc(100_000, 'world'))
      backupId = await backUp(noisy)
    },
    request: ({ call, serverId }, index, signal) =>
      status(
        call('GET', `/backups/${serverId}/${backupId}/download`, {
          headers: { range: `bytes=${1000 + index}-${1100 + index}` },
          signal,
        }),
      ),
    atOnce: 20,
  },
  'packs with big bodies': {
    request: ({ call, serverId }, _index, signal) =>
      status(call('POST', `/files/${serverId}/pack`, { body: BIG_BODY, headers: JSON_TYPE, signal })),
    atOnce: 20,
  },
}

/** Asks for all of the activity and takes nothing of it. */
function readSlowly({ url, token, serverId }: Tenant, _index: number, signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, accept: 'application/x-ndjson' }
    const sent = httpRequest(`${url}/v1/game/servers/${serverId}/activity`, { headers, signal }, (response) => {
      setTimeout(() => {
        response.destroy()
        resolve(response.statusCode ?? 0)
      }, 1000)
    })
    sent.on('error', reject).end()
  })
}
