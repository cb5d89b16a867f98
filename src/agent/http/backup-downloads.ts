// A backup as an archive, or one file out of it, for whoever holds a link to it.
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ArchiveFormat } from '../../contract/agent/agent-files.ts'
import { fail } from '../../contract/errors.ts'
import { ARCHIVES_BEGUN } from '../../contract/fixed-limits.ts'
import { whileClientStays } from '../../http/client-left.ts'
import { createPaced } from '../../http/paced.ts'
import type { OpenedLink } from '../../http/signed-links.ts'
import { createKeyedMutex } from '../../kit/waiting/mutex.ts'
import type { BackupsOfAgent } from '../backups/index.ts'
import { ARCHIVE_MIME } from '../files/archives/formats.ts'
import { aboutFieldAsync } from '../files/field-faults.ts'
import { untrustedHeaders } from './disposition.ts'
import type { LinkDoor } from './link-door.ts'
import { isUnchanged, rangeOf, requireVersion, versionHeaders } from './ranges.ts'
import { sendStream } from './serve-file.ts'

const SIZES_KEPT = 1000

/** Another version of a compressor may make other bytes: a range of those must not be joined to these. */
const COMPRESSORS: Record<ArchiveFormat, string> = {
  zip: `zlib${process.versions.zlib}`,
  tar: '',
  'tar.gz': `zlib${process.versions.zlib}`,
  'tar.zst': `zstd${process.versions.zstd}`,
}

type Opened = OpenedLink<'download-backup'>

interface Whole {
  etag: string
  modifiedAt: Date
  name: string
  mime: string
  /** null until it has to be known. */
  sizeBytes: number | null
  /** May cost as much as the whole download. */
  measure(): Promise<number>
  /** From `start` to, not including, `end`. */
  open(start: number, end: number | null): Promise<Readable>
}

export type ServeBackup = (link: string, request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

export function createBackupDownloads({ backups, door }: { backups: BackupsOfAgent; door: LinkDoor }): ServeBackup {
  /** Of archives that were measured: a download that resumes more than once is measured once. */
  const sizes = new Map<string, number>()
  /** Parts that are asked for at once wait for one measurement; if its client leaves, the next one makes it. */
  const measuring = createKeyedMutex()

  const { perSecond, ...limits } = ARCHIVES_BEGUN
  /** A compressor and its memory for each, and for a part all that is before it made again. */
  const paced = createPaced(
    { unitsPerSecond: perSecond, ...limits },
    'Too many downloads of backups of this server have begun.',
  )

  async function archive({ serverId, detail }: Opened, format: ArchiveFormat, signal: AbortSignal): Promise<Whole> {
    await paced.turnOf(serverId, 1, signal)
    const { backupId, name, createdAt } = detail
    const etag = `"${backupId}.${format}${COMPRESSORS[format]}"`
    const open = (start: number) => backups.download({ serverId, backupId, format, start, signal })
    const measureInTurn = () =>
      measuring(etag, async () => {
        const known = sizes.get(etag)
        if (known !== undefined) return known
        signal.throwIfAborted()
        const { stream, sizeBytes } = await open(0)
        const size = sizeBytes ?? (await lengthOf(stream, signal))
        stream.destroy()
        if (sizes.size >= SIZES_KEPT) sizes.clear()
        sizes.set(etag, size)
        return size
      })
    const measure = () => Promise.race([measureInTurn(), whenAborted(signal)])
    return {
      etag,
      modifiedAt: new Date(createdAt),
      name: `${name}.${format}`,
      mime: ARCHIVE_MIME[format],
      sizeBytes: sizes.get(etag) ?? (format === 'tar' ? await measure() : null),
      measure,
      async open(start, end) {
        const { stream } = await open(start)
        return end === null ? stream : stream.compose(firstBytes(end - start))
      },
    }
  }

  async function file({ serverId, detail: { backupId } }: Opened, path: string): Promise<Whole> {
    const { stream, sizeBytes, modifiedAt } = await aboutFieldAsync('/path', () =>
      backups.readFile({ serverId, backupId, path }),
    )
    stream.destroy()
    return {
      etag: `"${backupId}.${Buffer.from(path).toString('base64url').slice(0, 200)}"`,
      modifiedAt: new Date(modifiedAt),
      name: path.slice(path.lastIndexOf('/') + 1),
      mime: 'application/octet-stream',
      sizeBytes,
      measure: async () => sizeBytes,
      open: async (start, end) =>
        (await backups.readFile({ serverId, backupId, path, start, ...(end === null ? {} : { end }) })).stream,
    }
  }

  return (link, request, reply) =>
    door.transfer('download-backup', link, async (opened, signal) => {
      const { detail } = opened
      return await whileClientStays(reply, signal, async (staying) => {
        const whole = await ('path' in detail ? file(opened, detail.path) : archive(opened, detail.format, staying))
        return await send(whole, request, reply, staying)
      })
    })
}

async function send(whole: Whole, request: FastifyRequest, reply: FastifyReply, signal: AbortSignal) {
  requireVersion(request.headers, whole)
  reply.headers(versionHeaders(whole))
  if (isUnchanged(request.headers, whole)) return reply.code(304).send()
  const sizeBytes = whole.sizeBytes ?? (request.headers.range === undefined ? null : await whole.measure())
  const range = sizeBytes === null ? undefined : rangeOf(request.headers, whole, sizeBytes)
  if (range === 'unsatisfiable')
    throw fail('range_not_satisfiable', {
      detail: `It has ${sizeBytes} bytes.`,
      headers: { 'content-range': `bytes */${sizeBytes}` },
    })
  reply.headers({ ...untrustedHeaders(whole.name), 'content-type': whole.mime })
  const start = range?.start ?? 0
  const end = range ? range.end + 1 : sizeBytes
  if (end !== null) reply.header('content-length', end - start)
  if (range) reply.code(206).header('content-range', `bytes ${start}-${range.end}/${sizeBytes}`)
  if (request.method === 'HEAD') return reply.send()
  if (end === start) return reply.send('')
  return await sendStream(await whole.open(start, range ? range.end + 1 : null), reply, signal)
}

/**
 * Fails then; whoever waits for somebody else's work leaves at once. Never by throwing: the work that it is raced with is under way by
 * then, and its own failure would be nobody's, which ends the process.
 */
async function whenAborted(signal: AbortSignal): Promise<never> {
  signal.throwIfAborted()
  return await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
}

async function lengthOf(stream: Readable, signal: AbortSignal): Promise<number> {
  let bytes = 0
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    signal.throwIfAborted()
    bytes += chunk.length
  }
  return bytes
}

function firstBytes(count: number) {
  return async function* (source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let left = count
    for await (const chunk of source) {
      yield chunk.subarray(0, left)
      left -= Math.min(left, chunk.length)
      if (left === 0) return
    }
  }
}
