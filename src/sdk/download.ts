// A download that goes on by itself: after a break it asks for the rest of the same version, and it ends only when every
// byte is there. An archive is made while it is sent and cannot be gone on with.
import { type ArchiveFormat, requestDownload } from '../contract/files/files.ts'
import { isApiError, refusedHere, TransportError } from './errors.ts'
import { pauseAfter } from './retry.ts'
import type { Transport } from './transport.ts'

export interface DownloadOptions {
  /** What a folder, or a file on request, is packed into; a folder is a zip by default. */
  format?: ArchiveFormat
  signal?: AbortSignal
  /** `bytesTotal` is null for an archive. */
  onProgress?: (bytesDone: number, bytesTotal: number | null) => void
  /** How often in a row it may fail without a byte arriving in between; 12 by default. */
  retries?: number
  /** A connection on which nothing comes for longer is taken for dead. */
  silenceMs?: number
}

export interface Download {
  /** The name that the service gives to it. */
  name: string
  /** Null for an archive. */
  sizeBytes: number | null
  etag: string | null
  /** Ends when all of it is there, and fails otherwise. */
  bytes: ReadableStream<Uint8Array<ArrayBuffer>>
}

const SILENCE_MS = 45_000

interface Source {
  transport: Transport
  serverId: string
  path: string
  options: DownloadOptions
  url: string
}

export async function download(
  transport: Transport,
  serverId: string,
  path: string,
  options: DownloadOptions = {},
): Promise<Download> {
  const source: Source = { transport, serverId, path, options, url: '' }
  let opened: Opened | undefined
  for (let failures = 0; !opened; ) {
    try {
      source.url = await requestLink(source)
      opened = await open(source, {})
    } catch (error) {
      await pauseAfter(error, ++failures, options)
    }
  }
  const { headers } = opened.response
  const length = headers.get('content-length')
  const isWhole = headers.get('accept-ranges') === 'bytes' && length !== null
  const version: Version = { sizeBytes: isWhole ? Number(length) : null, etag: isWhole ? headers.get('etag') : null }
  return { ...version, name: nameIn(headers) ?? 'download', bytes: streamOf(readAll(source, opened, version)) }
}

interface Version {
  sizeBytes: number | null
  etag: string | null
}

interface Opened {
  response: Response
  /** Ends it. */
  abort: AbortController
}

async function requestLink({ transport, serverId, path, options }: Source): Promise<string> {
  const query = { path, ...(options.format ? { format: options.format } : {}) }
  const signal = options.signal ? { signal: options.signal } : {}
  return (await transport.call(requestDownload, { params: { serverId }, query, ...signal })).url
}

async function open({ transport, url, options }: Source, headers: Record<string, string>): Promise<Opened> {
  const abort = new AbortController()
  const signal = options.signal ? AbortSignal.any([abort.signal, options.signal]) : abort.signal
  // What is compressed on the way would have another length.
  const wanted = { 'accept-encoding': 'identity', ...headers }
  return { response: await transport.follow(url, { method: 'GET', headers: wanted, signal }), abort }
}

async function* readAll(source: Source, first: Opened, version: Version): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const { options } = source
  let done = 0
  let failures = 0
  let opened: Opened | undefined = first
  for (;;) {
    try {
      opened ??= await openRest(source, done, version)
      for await (const chunk of chunksOf(opened, options.silenceMs ?? SILENCE_MS)) {
        done += chunk.byteLength
        failures = 0
        options.onProgress?.(done, version.sizeBytes)
        yield chunk
      }
      if (version.sizeBytes === null || done === version.sizeBytes) return
      throw new TransportError('network', `The answer ended after ${done} of ${version.sizeBytes} bytes.`)
    } catch (error) {
      if (version.etag === null) throw error
      await pauseAfter(error, ++failures, options)
    } finally {
      opened?.abort.abort()
      opened = undefined
    }
  }
}

async function openRest(source: Source, from: number, { sizeBytes, etag }: Version): Promise<Opened> {
  const headers = { range: `bytes=${from}-`, 'if-range': etag ?? '' }
  const opened = await open(source, headers).catch(async (error) => {
    if (isApiError(error, 'range_not_satisfiable')) throw changed()
    if (!isApiError(error, 'not_found')) throw error
    // The time of the link may be over.
    source.url = await requestLink(source)
    return await open(source, headers)
  })
  const range = opened.response.headers.get('content-range')
  if (opened.response.status === 206 && range === `bytes ${from}-${(sizeBytes ?? 0) - 1}/${sizeBytes}`) return opened
  opened.abort.abort()
  throw changed()
}

const changed = () => refusedHere('The file was changed while it was being downloaded.', 'precondition_failed')

async function* chunksOf({ response, abort }: Opened, silenceMs: number): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  if (!response.body) return
  const reader = response.body.getReader()
  for (;;) {
    const timer = setTimeout(() => abort.abort(), silenceMs)
    try {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    } catch (error) {
      throw new TransportError(abort.signal.aborted ? 'timeout' : 'network', 'The answer broke off.', { cause: error })
    } finally {
      clearTimeout(timer)
    }
  }
}

function nameIn(headers: Headers): string | null {
  const disposition = headers.get('content-disposition') ?? ''
  const encoded = /filename\*=UTF-8''([^;\s]+)/i.exec(disposition)?.[1]
  return encoded ? decodeURIComponent(encoded) : (/filename="([^"]*)"/.exec(disposition)?.[1] ?? null)
}

function streamOf(bytes: AsyncGenerator<Uint8Array<ArrayBuffer>>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await bytes.next()
        if (done) controller.close()
        else controller.enqueue(value)
      } catch (error) {
        controller.error(error)
      }
    },
    async cancel() {
      await bytes.return(undefined)
    },
  })
}
