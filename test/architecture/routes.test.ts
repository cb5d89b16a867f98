// Every route says which scope it needs; every operation of the contract has a route.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify, { type FastifyInstance, type RouteOptions } from 'fastify'
import { OPERATIONS } from '../../src/contract/index.ts'
import { BASE_PATH, type Operation } from '../../src/contract/operation.ts'
import { SCOPES } from '../../src/contract/scopes.ts'
import { withBuiltApp } from '../support/app.ts'

/** The routes that anybody may call, each with its reason. */
const OPEN: Record<string, string> = {
  '/healthz': 'says only that the process lives',
  '/readyz': 'says only whether it can work; watched by load balancers that have no token',
  '/metrics': 'asks for a token itself, unless it is called from this machine',
  [`${BASE_PATH}/openapi.json`]: 'the same for everybody, and says nothing of this instance',
  '/docs': 'the page that shows the document',
  '/': 'the page that leads to these; the version on it is in the document too',
  '/favicon.ico': 'nothing at all, which browsers ask for',
}

/** Operations that any good token may call, each with why. */
const ANY_TOKEN: Record<string, string> = {
  readOwnToken: 'says what the token itself is and reaches, and nothing else',
  readSession: 'the same, with the session of the request',
  endSession: 'ends the session of the request, and no other',
  listSessions: 'says where the token itself is signed in',
  endOtherSessions: 'ends sessions of the token itself, and no others',
  endOneSession: 'ends one session of the token itself',
  createSignInLink: 'signs in with the token that asks, and no other',
}

/** Operations that anybody may call, each with why. */
const OPEN_OPERATIONS: Record<string, string> = {
  createSession: 'signs in: whoever calls it has only what they sign in with',
}

const openUnder = (url: string) =>
  Object.keys(OPEN).some((path) => url === path || (path === '/docs' && url.startsWith('/docs/')))

const isKnown = ({ id, isOpen }: Operation) => Object.hasOwn(isOpen ? OPEN_OPERATIONS : ANY_TOKEN, id)
const isOpen = ({ config }: RouteOptions) =>
  (config as { operation?: Operation } | undefined)?.operation?.isOpen ?? false

function unscoped(routes: readonly RouteOptions[]): string[] {
  return routes
    .filter(({ url, config }) => {
      const operation = (config as { operation?: Operation } | undefined)?.operation
      const isScoped = SCOPES.includes(operation?.scope as (typeof SCOPES)[number])
      return !openUnder(url) && !isScoped && !(operation && isKnown(operation))
    })
    .map(({ method, url }) => `${method} ${url}`)
}

test('every route declares a scope, but for a short list', async () => {
  await withBuiltApp(async (_app, routes) => {
    assert.ok(routes.length > OPERATIONS.length)
    assert.deepEqual(unscoped(routes), [])
    const served = routes.map(({ method, url }) => `${method} ${url}`)
    for (const { method, path } of OPERATIONS) {
      assert.ok(served.includes(`${method} ${BASE_PATH}${path.replace(/\{(\w+)\}/g, ':$1')}`), `${method} ${path}`)
    }
    for (const path of Object.keys(OPEN))
      assert.ok(
        routes.some(({ url }) => url.startsWith(path)),
        `${path} is no route`,
      )
  })
})

test('without a token no route but those answers anything but 401', async () => {
  await withBuiltApp(async (app, routes) => {
    for (const { method, url } of routes.filter((route) => !openUnder(route.url) && !isOpen(route))) {
      const reply = await app.inject({ method: method as 'GET', url: url.replace(/:\w+/g, 'x') })
      assert.ok(reply.statusCode === 401 || reply.statusCode === 429, `${method} ${url}: ${reply.statusCode}`)
    }
  })
})

test('each of those answers, whoever asks', async () => {
  await withBuiltApp(async (app, routes) => {
    for (const { url } of routes.filter((route) => openUnder(route.url) && route.method === 'GET')) {
      const reply = await app.inject({ method: 'GET', url })
      assert.ok(reply.statusCode < 400, `GET ${url}: ${reply.statusCode}`)
    }
  })
})

test('a route without a scope would be found', async () => {
  const routes: RouteOptions[] = []
  const app: FastifyInstance = Fastify()
  app.addHook('onRoute', (route) => void routes.push(route))
  app.get('/v1/game/secrets', async () => 'all of them')
  app.get('/v1/game/odd', { config: { operation: { scope: 'nonsense' } } as object }, async () => '')
  await app.ready()
  assert.deepEqual(unscoped(routes), [
    'GET /v1/game/secrets',
    'HEAD /v1/game/secrets',
    'GET /v1/game/odd',
    'HEAD /v1/game/odd',
  ])
  await app.close()
})
