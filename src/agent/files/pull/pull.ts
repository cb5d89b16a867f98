// Fetching a file from a URL into a server. The address is checked after every name lookup and every redirect, and the
// connection is made to the address that was checked, so neither a redirect nor a name that changes leads inside.
import { createHash } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import type { FileEntry, FilesWork } from '../../../contract/agent/agent-files.ts'
import { fail, isFailure } from '../../../contract/errors.ts'
import { parsePullUrl } from '../../../contract/files/pull-url.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import type { TaskContext } from '../../tasks.ts'
import { writeContent } from '../content.ts'
import { describePath } from '../reading/entries.ts'
import { checkNewName, parsePath } from '../sandbox/paths.ts'
import type { ServerFiles } from '../server-files.ts'
import { isOwnAddress, isPublicAddress } from './addresses.ts'

const MAX_REDIRECTS = 5
const DISK_CODES = ['ENOSPC', 'EDQUOT', 'EIO', 'EROFS']

export interface Address {
  address: string
  family: number
}

export interface PullOptions {
  maxBytes: number
  /** For the whole of it, and for a connection on which nothing happens. */
  maxMs: number
  idleMs: number
  resolve: (hostname: string) => Promise<Address[]>
  isAllowed: (address: string) => boolean
}

export const PULL_OPTIONS: PullOptions = {
  maxBytes: 64 * 1024 ** 3,
  maxMs: 6 * 3600_000,
  idleMs: 30_000,
  resolve: (hostname) => lookup(hostname, { all: true, verbatim: true }),
  isAllowed: (address) => isPublicAddress(address) && !isOwnAddress(address),
}

export type PullWork = Extract<FilesWork, { kind: 'files.pull' }>

export async function pull(
  server: ServerFiles,
  work: PullWork,
  { taskId, signal, report }: TaskContext,
  options: PullOptions = PULL_OPTIONS,
): Promise<FileEntry> {
  const earlier = server.placements.find(taskId)
  if (earlier !== undefined) return describePath(server.files, earlier)
  const directory = parsePath(work.directory)
  if (work.name !== undefined) checkNewName(work.name)
  const timeLimit = AbortSignal.timeout(options.maxMs)
  const either = AbortSignal.any([signal, timeLimit])
  try {
    const { response, url } = await follow(parsePullUrl(work.url), either, options)
    const path = `/${[...directory, work.name ?? nameOf(response, url)].join('/')}`
    const expectedBytes = lengthOf(response)
    report({ bytesTotal: expectedBytes ?? null, filesTotal: 1 })
    const { entry } = await writeContent(server, path, checked(counted(response, report), work.sha256), {
      overwrite: work.overwrite ?? false,
      maxBytes: options.maxBytes,
      signal: either,
      workId: taskId,
      ...(expectedBytes === undefined ? {} : { expectedBytes }),
    }).finally(() => response.destroy())
    report({ filesDone: 1 })
    return entry
  } catch (error) {
    signal.throwIfAborted()
    if (timeLimit.aborted) throw fail('invalid_url', 'The transfer took too long.', error)
    if (isFailure(error) || hasCode(error, ...DISK_CODES)) throw error
    throw fail('invalid_url', 'The address could not be fetched: the connection failed.', error)
  }
}

/** Asks for the address, and for where it points to, until there is an answer with a body. */
async function follow(first: URL, signal: AbortSignal, options: PullOptions) {
  let url = first
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const response = await ask(url, await checkedAddresses(url, options), signal, options.idleMs)
    const { statusCode = 0, headers } = response
    if (statusCode >= 200 && statusCode < 300 && statusCode !== 204 && statusCode !== 206) return { response, url }
    response.destroy()
    if (![301, 302, 303, 307, 308].includes(statusCode) || !headers.location)
      throw fail('invalid_url', `The address answered with status ${statusCode}.`)
    url = parsePullUrl(headers.location, url)
  }
  throw fail('invalid_url', 'The address redirects too many times.')
}

/** One address that is not allowed refuses the name as a whole. */
async function checkedAddresses(url: URL, options: PullOptions): Promise<Address[]> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const addresses = isIP(host) ? [{ address: host, family: isIP(host) }] : await resolved(host, options)
  if (addresses.length === 0 || !addresses.every(({ address }) => options.isAllowed(address))) throw notPublic()
  return addresses
}

/** One answer for a name that is not known and one that leads inside: nobody finds out which names there are inside. */
const notPublic = (cause?: unknown) =>
  fail('invalid_url', 'The address is not on the public Internet, or its name cannot be resolved.', cause)

async function resolved(host: string, options: PullOptions): Promise<Address[]> {
  try {
    return await options.resolve(host)
  } catch (error) {
    throw notPublic(error)
  }
}

async function ask(url: URL, addresses: Address[], signal: AbortSignal, idleMs: number): Promise<IncomingMessage> {
  const pinned: LookupFunction = (_host, options, answer) => {
    if (options.all) answer(null, addresses)
    else answer(null, addresses[0]?.address ?? '', addresses[0]?.family ?? 4)
  }
  const request = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, {
    agent: false,
    lookup: pinned,
    signal,
    timeout: idleMs,
    headers: { 'user-agent': 'gamekeeper', accept: '*/*', 'accept-encoding': 'identity' },
  })
  request.once('timeout', () => request.destroy(new Error('nothing was heard for too long')))
  request.end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  // A later error reaches whoever reads the body; here it must only not be without a listener.
  request.on('error', () => {})
  return response
}

function lengthOf({ headers }: IncomingMessage): number | undefined {
  const length = Number(headers['content-length'])
  return headers['content-length'] !== undefined && Number.isSafeInteger(length) ? length : undefined
}

/** What the answer calls it, else the last name in the address; only if that is a name that may be made. */
function nameOf({ headers }: IncomingMessage, url: URL): string {
  const disposition = headers['content-disposition'] ?? ''
  const encoded = /filename\*=(?:utf-8|UTF-8)''([^;\s]+)/.exec(disposition)?.[1]
  const quoted = /filename="([^"]*)"/.exec(disposition)?.[1] ?? /filename=([^;\s"]+)/.exec(disposition)?.[1]
  const last = url.pathname.split('/').at(-1)
  for (const candidate of [decoded(encoded), quoted, decoded(last)])
    if (candidate && isNewName(candidate)) return candidate
  return 'download'
}

function decoded(text: string | undefined): string | undefined {
  try {
    return text && decodeURIComponent(text)
  } catch {
    return undefined
  }
}

function isNewName(name: string): boolean {
  try {
    checkNewName(name)
    return true
  } catch {
    return false
  }
}

/** The last chunk is followed by a fault where the bytes are not those that were asked for. */
async function* checked(chunks: AsyncIterable<Uint8Array>, sha256: string | undefined): AsyncGenerator<Uint8Array> {
  if (sha256 === undefined) return yield* chunks
  const hash = createHash('sha256')
  for await (const chunk of chunks) {
    hash.update(chunk)
    yield chunk
  }
  const found = hash.digest('hex')
  if (found !== sha256) throw fail('checksum_mismatch', `The bytes have the SHA-256 ${found}, not ${sha256}.`)
}

async function* counted(response: IncomingMessage, report: TaskContext['report']): AsyncGenerator<Uint8Array> {
  let bytesDone = 0
  for await (const chunk of response) {
    bytesDone += chunk.length
    report({ bytesDone })
    yield chunk
  }
}
