// What a request proves its session with, and whether it comes from a page of ours. Only looked at where a request has no
// Authorization header. A browser sends a cookie to every port of a host, so over plain HTTP also to a game that somebody opens
// there, and takes one from it: the cookie is worth nothing without the proof, which only pages of our own origin have.
import type { FastifyRequest } from 'fastify'
import { fail } from '../../contract/errors.ts'
import { SESSION_PROOF_HEADER } from '../../contract/sessions.ts'
import { countHeader } from '../../http/server.ts'

export interface SessionCredential {
  /** More than one where somebody else on the host has set it too: the proof says which of them is meant. */
  cookies: readonly string[]
  proof: string
}

export interface SessionCookies {
  /** Undefined where the request has no cookie of ours. */
  read(request: FastifyRequest): SessionCredential | undefined
  /** For `Set-Cookie`. */
  write(request: FastifyRequest, value: string, maxAgeSeconds: number): string
  clear(request: FastifyRequest): string
}

/** Whether an origin, as browsers write it, is one that this service is reached by. */
export type IsOwnOrigin = (origin: string, request: FastifyRequest) => boolean

const PLAIN_NAME = 'gamekeeper'
/** Browsers take it only over HTTPS, for this very host and for all of its paths: no sibling of the host can set it. */
const SECURE_NAME = '__Host-gamekeeper'
/** RFC 6265: a name, an equals sign, and a value of these characters; blanks only around the pair. */
const PAIR = /^[ \t]*([!#$%&'*+\-.^_`|~0-9A-Za-z]+)=([\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*)[ \t]*$/

export function createSessionCookies(publicUrl: string | null): SessionCookies {
  const isPublicSecure = publicUrl?.startsWith('https:') ?? false
  const isSecure = (request: FastifyRequest) => isPublicSecure || request.protocol === 'https'
  const nameFor = (request: FastifyRequest) => (isSecure(request) ? SECURE_NAME : PLAIN_NAME)

  function write(request: FastifyRequest, value: string, maxAgeSeconds: number): string {
    const attributes = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict`
    return `${nameFor(request)}=${value}; ${attributes}${isSecure(request) ? '; Secure' : ''}`
  }

  return {
    read(request) {
      const { cookie, [SESSION_PROOF_HEADER]: proof } = request.headers
      const cookies = cookie === undefined ? [] : valuesOf(cookie, nameFor(request))
      return cookies.length === 0 ? undefined : { cookies, proof: typeof proof === 'string' ? proof : '' }
    },
    write,
    clear: (request) => write(request, '', 0),
  }
}

/** Cookies of other programs on the same host come along, whatever is in them; they are passed over. */
function valuesOf(header: string, name: string): string[] {
  return header.split(';').flatMap((part) => {
    const [, found, value = ''] = PAIR.exec(part) ?? []
    return found === name ? [value] : []
  })
}

const READING = new Set(['GET', 'HEAD'])

/**
 * A cookie is sent along by the browser, whoever wrote the page: so a change needs to come from a page of ours. What only
 * reads need not say where it comes from, since the browser lets no other page see the answer.
 */
export function requireOwnPage(request: FastifyRequest, isOwnOrigin: IsOwnOrigin): void {
  const { origin, 'sec-fetch-site': site } = request.headers
  const isForeign = site !== undefined && site !== 'same-origin' && site !== 'none'
  const isReading = READING.has(request.method)
  const isOwn = origin === undefined ? isReading || site === 'same-origin' : isOnly(request, origin, isOwnOrigin)
  if (isForeign || !isOwn) throw foreignPage(origin)
}

/** For a sign-in, which needs no cookie: programs that are no browser say nothing of a page, and are let through. */
export function refuseForeignPage(request: FastifyRequest, isOwnOrigin: IsOwnOrigin): void {
  const { origin, 'sec-fetch-site': site } = request.headers
  const isForeign = site !== undefined && site !== 'same-origin'
  if (isForeign || (origin !== undefined && !isOnly(request, origin, isOwnOrigin))) throw foreignPage(origin)
}

const isOnly = (request: FastifyRequest, origin: string, isOwnOrigin: IsOwnOrigin) =>
  countHeader(request.raw, 'origin') === 1 && isOwnOrigin(origin, request)

function foreignPage(origin: string | undefined) {
  const from = origin === undefined ? 'no page of this service' : `the origin ${origin.slice(0, 200)}`
  return fail(
    'forbidden',
    `The request came from ${from}, and a session is only for this service's own pages. Behind a proxy, set GAMEKEEPER_PUBLIC_URL to the address that people use.`,
  )
}
