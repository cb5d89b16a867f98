// A known path with an unsupported method: 405, with the supported ones in `Allow`.
import type { FastifyInstance } from 'fastify'

const ORDER = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

interface KnownPath {
  form: RegExp
  methods: Set<string>
}

/** Must be asked for before the routes are registered. Answers nothing for a path that no route has. */
export function collectMethods(app: FastifyInstance): (url: string) => string[] {
  const paths = new Map<string, KnownPath>()
  app.addHook('onRoute', ({ url, method }) => {
    const known = paths.get(url) ?? { form: formOf(url), methods: new Set(['OPTIONS']) }
    for (const each of [method].flat()) known.methods.add(each)
    paths.set(url, known)
  })
  return (url) => {
    const path = withoutTrailingSlash(url.split('?', 1)[0] ?? '')
    const fitting = [...paths.values()].filter(({ form }) => form.test(path))
    return ORDER.filter((method) => fitting.some(({ methods }) => methods.has(method)))
  }
}

/** A route's address as a regular expression over paths without a trailing slash. */
function formOf(route: string): RegExp {
  const form = withoutTrailingSlash(route)
    .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replace(/\*/g, '.*')
    .replace(/:\w+/g, '[^/]+')
  return new RegExp(`^${form}$`)
}

/** For comparing addresses: with a slash at the end of its path, and without, it is the same one. */
export function withoutTrailingSlash(url: string): string {
  return url.replace(/(?<=[^/])\/(?=\?|$)/, '')
}
