// The panel: static files that were built beforehand, and one page for every address that the panel itself knows. Only
// files that were there at the start are served, by the exact path that they have: nothing of a request names a file.
import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative } from 'node:path'
import type { FastifyReply, FastifyRequest } from 'fastify'

export interface Panel {
  /** Answers if the address is one of a file or a page of the panel; false if it is not. */
  answer(request: FastifyRequest, reply: FastifyReply): boolean
  /** The page itself. */
  sendPage(reply: FastifyReply): FastifyReply
}

interface StaticFile {
  path: string
  type: string
  encodings: readonly Encoding[]
}
interface Loaded {
  bytes: Buffer
  etag: string
}
type Encoding = keyof typeof SUFFIXES

/** In the order in which they are preferred. */
const SUFFIXES = { br: '.br', gzip: '.gz' } as const
const PAGE = 'index.html'
/** Stands in the page wherever the nonce of an answer belongs. */
export const NONCE_MARK = '__CSP_NONCE__'
/** Below these there is the service itself, whatever the panel calls its own pages. */
const OF_THE_SERVICE = /^\/(?:v1|docs|healthz|readyz|metrics)(?:\/|$)/
const IMMUTABLE = 'public, max-age=31536000, immutable'
const HTML_TYPE = 'text/html; charset=utf-8'

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': HTML_TYPE,
  '.ico': 'image/x-icon',
  '.jpg': 'image/jpeg',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
  '.webmanifest': 'application/manifest+json',
  '.webp': 'image/webp',
  '.woff2': 'font/woff2',
}

/** Null where none was built. */
export function openPanel(directory: string): Panel | null {
  const files = listFiles(directory)
  if (!files.has(`/${PAGE}`)) return null
  const page = readFileSync(join(directory, PAGE), 'utf8')
  const loaded = new Map<string, Loaded>()

  /** Kept in memory once it was asked for: there are few, and they never change. */
  function load(path: string): Loaded {
    const known = loaded.get(path)
    if (known) return known
    const bytes = readFileSync(path)
    const fresh = { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"` }
    loaded.set(path, fresh)
    return fresh
  }

  function sendFile(file: StaticFile, path: string, { headers }: FastifyRequest, reply: FastifyReply): void {
    const encoding = file.encodings.find((each) => accepts(headers['accept-encoding'], each))
    const { bytes, etag } = load(encoding ? file.path + SUFFIXES[encoding] : file.path)
    reply.headers({
      etag,
      'cache-control': path.startsWith('/assets/') ? IMMUTABLE : 'no-cache',
      'content-security-policy': policy(null),
      ...(file.encodings.length > 0 ? { vary: withVary(reply, 'Accept-Encoding') } : {}),
    })
    if (headers['if-none-match'] === etag) return void reply.code(304).send()
    if (encoding) reply.header('content-encoding', encoding)
    reply.type(file.type).send(bytes)
  }

  function sendPage(reply: FastifyReply): FastifyReply {
    const nonce = page.includes(NONCE_MARK) ? randomBytes(16).toString('base64') : null
    const headers = {
      'cache-control': 'no-cache',
      'content-security-policy': policy(nonce),
      'cross-origin-opener-policy': 'same-origin',
    }
    return reply
      .headers(headers)
      .type(HTML_TYPE)
      .send(nonce === null ? page : page.replaceAll(NONCE_MARK, nonce))
  }

  return {
    answer(request, reply) {
      if (request.method !== 'GET' && request.method !== 'HEAD') return false
      const path = request.url.split('?', 1)[0] ?? ''
      if (OF_THE_SERVICE.test(path)) return false
      const file = path === `/${PAGE}` ? undefined : files.get(path)
      if (file) sendFile(file, path, request, reply)
      else if (path.startsWith('/assets/') || !request.headers.accept?.includes('text/html')) return false
      else sendPage(reply)
      return true
    },
    sendPage,
  }
}

const withVary = (reply: FastifyReply, name: string) => [reply.getHeader('vary') ?? [], name].flat().join(', ')

/** By the path of their address. */
function listFiles(directory: string): Map<string, StaticFile> {
  const names = new Set(namesIn(directory))
  const isEncoded = (name: string) =>
    Object.values(SUFFIXES).some((suffix) => name.endsWith(suffix) && names.has(name.slice(0, -suffix.length)))
  const encodingsOf = (name: string) =>
    (Object.keys(SUFFIXES) as Encoding[]).filter((encoding) => names.has(name + SUFFIXES[encoding]))
  return new Map(
    [...names]
      .filter((name) => !isEncoded(name))
      .map((name) => {
        const type = TYPES[extname(name)] ?? 'application/octet-stream'
        return [`/${name}`, { path: join(directory, name), type, encodings: encodingsOf(name) }]
      }),
  )
}

function namesIn(directory: string): string[] {
  try {
    const entries = readdirSync(directory, { recursive: true, withFileTypes: true })
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => relative(directory, join(entry.parentPath, entry.name)))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** Whether an `Accept-Encoding` names it, and not with a weight of nothing. */
function accepts(header: string | string[] | undefined, encoding: Encoding): boolean {
  const parts = String(header ?? '').split(',')
  return parts.some((part) => {
    const [name = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
    return name === encoding && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter))
  })
}

/** No script but our own files; styles that a library writes into the page need the nonce of the answer. */
const policy = (nonce: string | null) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self'${nonce === null ? '' : ` 'nonce-${nonce}'`}`,
    "img-src 'self' data: blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
