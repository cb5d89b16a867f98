// What is done to the files of a server while it is killed, all of it over HTTP. Every file has a label; an answered
// request promises that its labels will be found again, in the tree or in the trash.
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { contentOf } from './files-content.ts'

export interface Session {
  url: string
  token: string
  serverId: string
  isDead(): boolean
  /** Told of every piece of work that begins. */
  onBegin(): void
}

export interface World {
  /** Found again for ever, unless emptied on purpose. */
  promised: Set<string>
  nextLabel: number
  uploads: TusUpload[]
  answers: Record<string, number>
}

export interface TusUpload {
  link: string
  id: string
  label: string
  bytes: Buffer<ArrayBuffer>
  /** Where the service last said that it is. */
  acknowledged: number
}

const NAMES = 6
const REFUSALS = ['not_found', 'already_exists', 'server_busy', 'invalid_path', 'invalid_request', 'invalid_archive']
const TUS = { 'tus-resumable': '1.0.0' }

const name = () => `f${randomInt(NAMES)}`
const folder = () => `/d${randomInt(3)}`
const path = () => `${folder()}/${name()}`

export async function call(session: Session, method: string, target: string, body?: unknown): Promise<Answer> {
  const isRaw = Buffer.isBuffer(body)
  return await request(session, `${session.url}/v1/game${target}`, {
    method,
    headers: {
      authorization: `Bearer ${session.token}`,
      ...(body === undefined ? {} : { 'content-type': isRaw ? 'application/octet-stream' : 'application/json' }),
    },
    ...(body === undefined ? {} : { body: isRaw ? new Uint8Array(body) : JSON.stringify(body) }),
  })
}

interface Answer {
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
  body: any
}

/** Refused for a reason that the disorder explains: nothing was promised. */
export class Refused extends Error {}

async function request(session: Session, url: string, init: RequestInit): Promise<Answer> {
  const response = await fetch(url, init)
  const text = await response.text()
  const body = text === '' ? null : JSON.parse(text)
  if (response.ok) return { headers: response.headers, body }
  // It is going down under us: 503 is no promise.
  if (REFUSALS.includes(body?.code) || session.isDead()) throw new Refused(body?.code)
  throw new assert.AssertionError({ message: `${init.method} ${new URL(url).pathname}: ${response.status} ${text}` })
}

function newFile(world: World): { label: string; bytes: Buffer<ArrayBuffer> } {
  const label = `l${world.nextLabel++}-`
  return { label, bytes: contentOf(label, randomInt(4) === 0 ? randomInt(900_000) : randomInt(30_000)) }
}

type Work = (session: Session, world: World) => Promise<void>

const files = (session: Session, rest = '') => `/files/${session.serverId}${rest}`

const WORK: Record<string, Work> = {
  async put(session, world) {
    const { label, bytes } = newFile(world)
    await call(session, 'PUT', files(session, `/content?path=${path()}`), bytes)
    world.promised.add(label)
  },
  async multipart(session, world) {
    const { body } = await call(session, 'GET', files(session, '/upload'))
    const made = new Map(Array.from({ length: 1 + randomInt(4) }, () => [name(), newFile(world)]))
    const form = new FormData()
    for (const [as, { bytes }] of made) form.append('files', new Blob([bytes]), as)
    await request(session, `${body.url}?directory=${folder()}`, { method: 'POST', body: form })
    for (const { label } of made.values()) world.promised.add(label)
  },
  async tus(session, world) {
    const upload = await createUpload(session, world)
    if (randomInt(3) === 0) {
      await sendTo(session, upload, randomInt(upload.bytes.length))
      world.uploads.push(upload)
    } else await finishUpload(session, world, upload)
  },
  async copy(session) {
    await call(session, 'POST', files(session, '/copy'), { location: randomInt(4) === 0 ? folder() : path() })
  },
  async move(session) {
    const [from, to] = randomInt(4) === 0 ? [folder(), `/e${randomInt(3)}`] : [path(), path()]
    const overwrite = randomInt(2) === 0
    await call(session, 'POST', files(session, '/move'), { moves: [{ from, to }], overwrite })
  },
  async delete(session) {
    const doomed = randomInt(4) === 0 ? [folder()] : [path(), path()]
    await call(session, 'DELETE', files(session), { files: [...new Set(doomed)].map((each) => each.slice(1)) })
  },
  async restore(session) {
    const { body } = await call(session, 'GET', files(session, '/trash?limit=100'))
    const item = body.data[randomInt(Math.max(1, body.data.length))]
    if (item) await call(session, 'POST', files(session, `/trash/${item.id}/restore`))
  },
  async pack(session) {
    const target = `/p${randomInt(3)}.tar`
    await call(session, 'POST', files(session, '/pack'), { files: [folder().slice(1)], target })
  },
  async unpack(session) {
    const body = { path: `/p${randomInt(3)}.tar`, directory: `/x${randomInt(2)}`, overwrite: true }
    await call(session, 'POST', files(session, '/unpack'), body)
  },
}

async function createUpload(session: Session, world: World): Promise<TusUpload> {
  const { label, bytes } = newFile(world)
  const { body } = await call(session, 'GET', files(session, '/upload'))
  const metadata = Object.entries({ filename: name(), directory: folder() })
  const { headers } = await request(session, body.url, {
    method: 'POST',
    headers: {
      ...TUS,
      'upload-length': String(bytes.length),
      'upload-metadata': metadata.map(([key, text]) => `${key} ${btoa(text)}`).join(','),
    },
  })
  const id = headers.get('location')?.split('/').at(-1) ?? ''
  return { link: new URL(body.url).pathname, id, label, bytes, acknowledged: 0 }
}

async function sendTo(session: Session, upload: TusUpload, end: number): Promise<void> {
  const { headers } = await request(session, `${session.url}${upload.link}/${upload.id}`, {
    method: 'PATCH',
    headers: {
      ...TUS,
      'content-type': 'application/offset+octet-stream',
      'upload-offset': String(upload.acknowledged),
    },
    body: upload.bytes.subarray(upload.acknowledged, end),
  })
  upload.acknowledged = Number(headers.get('upload-offset'))
}

async function finishUpload(session: Session, world: World, upload: TusUpload): Promise<void> {
  await sendTo(session, upload, upload.bytes.length)
  assert.equal(upload.acknowledged, upload.bytes.length)
  world.promised.add(upload.label)
}

/** What the service says it has is what it was told, or more that was on its way; the rest makes the file whole. */
export async function resumeUpload(session: Session, world: World, upload: TusUpload): Promise<void> {
  const url = `${session.url}${upload.link}/${upload.id}`
  const { headers } = await request(session, url, { method: 'HEAD', headers: TUS })
  const offset = Number(headers.get('upload-offset'))
  assert.ok(offset >= upload.acknowledged, `${offset} bytes are left of ${upload.acknowledged} that were acknowledged`)
  upload.acknowledged = offset
  await finishUpload(session, world, upload)
}

/** One thing after another until the service is dead. */
export async function workUntilDead(session: Session, world: World): Promise<void> {
  const kinds = Object.keys(WORK)
  while (!session.isDead()) {
    const kind = kinds[randomInt(kinds.length)] ?? ''
    session.onBegin()
    try {
      await WORK[kind]?.(session, world)
      world.answers[kind] = (world.answers[kind] ?? 0) + 1
    } catch (error) {
      if (error instanceof Refused || session.isDead()) continue
      throw error
    }
  }
}
