// An upload that goes on by itself: over tus 1.0, in pieces, and after a break from where the service says it is.
import { requestUpload } from '../contract/files/files.ts'
import { changedWhileSent, isApiError, refusedHere, TransportError } from './errors.ts'
import { pauseAfter } from './retry.ts'
import type { Transport } from './transport.ts'

/** Something of a known size whose pieces can be read again: a file on disk, say. */
export interface ChunkReader {
  sizeBytes: number
  /** The bytes from `from` up to, not including, `to`. Fewer mean that the source has changed. */
  read(from: number, to: number): Promise<Uint8Array<ArrayBuffer>>
}

export type UploadSource = Blob | ChunkReader

export interface UploadOptions {
  /** Where the file is to be, such as `/world/level.dat`. */
  path?: string
  /** The same in two: the directory, and a name that may hold slashes; that of the `File` by default. */
  directory?: string
  name?: string
  /** False refuses to replace anything. What is replaced goes to the trash. */
  overwrite?: boolean
  /** Stops, and takes back what has been sent. */
  signal?: AbortSignal
  /** Told of every piece that has arrived. After a break it may be less than before. */
  onProgress?: (bytesDone: number, bytesTotal: number) => void
  /** Every piece carries its SHA-256. In browsers only on pages loaded over HTTPS. */
  checksum?: boolean
  /** The link of an earlier `requestUpload`, for many uploads; one is asked for by default. */
  link?: string
  /** Told where the upload is, as soon as there is one. */
  onCreated?: (url: string) => void
  /** Where an earlier one of the same file is, as `onCreated` has told: it goes on from there. Kept for a day by the service. */
  resume?: string
  /** How often in a row it may fail without a byte arriving in between; 12 by default, which is over a minute. */
  retries?: number
}

export interface Uploaded {
  path: string
  sizeBytes: number
}

const MIB = 1024 * 1024
const FIRST_PIECE = 4 * MIB
const SMALLEST_PIECE = 256 * 1024
const LARGEST_PIECE = 32 * MIB
/** A piece that takes less makes the next one larger, one that takes more makes it smaller. */
const BRISK_MS = 1000
const SLOW_MS = 8000
const GOODBYE_MS = 5000
const TUS = { 'tus-resumable': '1.0.0' }

interface Upload {
  transport: Transport
  serverId: string
  source: UploadSource
  options: UploadOptions
  sizeBytes: number
  /** Where it is now: the link may have to be asked for anew, the id stays. */
  url: string
}

export async function upload(
  transport: Transport,
  serverId: string,
  source: UploadSource,
  options: UploadOptions,
): Promise<Uploaded> {
  const sizeBytes = source instanceof Blob ? source.size : source.sizeBytes
  const { directory, name } = targetOf(source, options)
  if (options.checksum && !globalThis.crypto?.subtle) throw refusedHere('Checksums cannot be made here.')
  const self: Upload = { transport, serverId, source, options, sizeBytes, url: '' }
  self.url = options.resume ?? (await patiently(options, () => create(self, directory, name)))
  options.onCreated?.(self.url)
  try {
    options.signal?.throwIfAborted()
    await sendAll(self)
  } catch (error) {
    // Whoever signs in again goes on with what has arrived.
    if (!isApiError(error, 'unauthenticated')) await takeBack(self)
    throw error
  }
  return { path: `${directory.replace(/\/+$/, '')}/${name}`, sizeBytes }
}

function targetOf(source: UploadSource, { path, directory = '/', name }: UploadOptions) {
  if (path === undefined) {
    const given = name ?? ('name' in source && typeof source.name === 'string' ? source.name : '')
    if (given === '') throw refusedHere('An upload needs a path or a name.')
    return { directory: directory.startsWith('/') ? directory : `/${directory}`, name: given }
  }
  const at = path.lastIndexOf('/')
  if (at === path.length - 1) throw refusedHere('The path of an upload is that of a file.')
  const above = path.slice(0, Math.max(0, at))
  return { directory: above.startsWith('/') ? above : `/${above}`, name: path.slice(at + 1) }
}

async function create(self: Upload, directory: string, name: string): Promise<string> {
  const { transport, options } = self
  const url = options.link ?? (await requestLink(self)).url
  const overwrite = String(options.overwrite ?? true)
  const metadata = Object.entries({ filename: name, directory, overwrite }).map(
    ([key, text]) => `${key} ${base64(text)}`,
  )
  const headers = { ...TUS, 'upload-length': String(self.sizeBytes), 'upload-metadata': metadata.join(',') }
  options.signal?.throwIfAborted()
  // Not stopped by the signal: what is made must be known, to be taken back.
  const response = await transport.follow(url, { method: 'POST', headers })
  const location = response.headers.get('location')
  if (!location) throw new TransportError('foreign_answer', 'The service did not say where the upload is.')
  return new URL(location, url).href
}

function requestLink({ transport, serverId, options }: Upload) {
  const signal = options.signal ? { signal: options.signal } : {}
  return transport.call(requestUpload, { params: { serverId }, ...signal })
}

async function sendAll(self: Upload): Promise<void> {
  const { options, sizeBytes } = self
  let offset = 0
  let pieceBytes = FIRST_PIECE
  let failures = 0
  let isKnown = options.resume === undefined
  while (offset < sizeBytes) {
    const startedAt = performance.now()
    try {
      if (!isKnown) offset = await askOffset(self)
      isKnown = true
      const end = Math.min(sizeBytes, offset + pieceBytes)
      if (offset < end) offset = await sendPiece(self, offset, end)
      failures = 0
      pieceBytes = nextPiece(pieceBytes, performance.now() - startedAt)
      options.onProgress?.(offset, sizeBytes)
    } catch (error) {
      isKnown = false
      await pauseAfter(error, ++failures, options)
      pieceBytes = Math.max(SMALLEST_PIECE, pieceBytes / 2)
    }
  }
}

async function sendPiece(self: Upload, from: number, to: number): Promise<number> {
  const { source, options } = self
  const piece = source instanceof Blob ? source.slice(from, to) : await source.read(from, to)
  if ((piece instanceof Blob ? piece.size : piece.byteLength) !== to - from) throw changedWhileSent()
  const headers = {
    ...TUS,
    'content-type': 'application/offset+octet-stream',
    'upload-offset': String(from),
    ...(options.checksum ? { 'upload-checksum': `sha256 ${await sha256(piece)}` } : {}),
  }
  const response = await self.transport.follow(self.url, {
    method: 'PATCH',
    headers,
    body: piece,
    signal: options.signal,
  })
  return offsetIn(response)
}

/** Where to go on from. A link whose time is over is replaced; the upload itself is kept for a day. */
async function askOffset(self: Upload): Promise<number> {
  const ask = () => self.transport.follow(self.url, { method: 'HEAD', headers: TUS, signal: self.options.signal })
  try {
    return offsetIn(await ask())
  } catch (error) {
    if (!isGone(error)) throw error
    const { url } = await requestLink(self)
    self.url = `${url}/${self.url.slice(self.url.lastIndexOf('/') + 1)}`
    return offsetIn(
      await ask().catch((again) => {
        throw isGone(again) ? refusedHere('The upload is gone: its time was over.', 'not_found') : again
      }),
    )
  }
}

/** The answer to a HEAD has no body to say what is wrong. */
const isGone = (error: unknown) =>
  isApiError(error, 'not_found') || (error instanceof TransportError && (error.status === 404 || error.status === 410))

function offsetIn(response: Response): number {
  const offset = Number(response.headers.get('upload-offset') ?? Number.NaN)
  if (!Number.isSafeInteger(offset))
    throw new TransportError('foreign_answer', 'The service did not say how far it is.')
  return offset
}

function nextPiece(bytes: number, tookMs: number): number {
  if (tookMs < BRISK_MS) return Math.min(LARGEST_PIECE, bytes * 2)
  return tookMs > SLOW_MS ? Math.max(SMALLEST_PIECE, bytes / 2) : bytes
}

/** So that nothing of it takes up space until its time is over. As far as that can be done: it is not worth a fault. */
async function takeBack({ transport, url }: Upload): Promise<void> {
  await transport.follow(url, { method: 'DELETE', headers: TUS, timeoutMs: GOODBYE_MS }).catch(() => {})
}

async function patiently<T>(options: UploadOptions, work: () => Promise<T>): Promise<T> {
  for (let failures = 0; ; ) {
    try {
      return await work()
    } catch (error) {
      await pauseAfter(error, ++failures, options)
    }
  }
}

function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)))
}

async function sha256(piece: Blob | Uint8Array<ArrayBuffer>): Promise<string> {
  const bytes = piece instanceof Blob ? await piece.arrayBuffer() : piece
  return btoa(String.fromCharCode(...new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))))
}
