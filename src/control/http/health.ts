// For monitoring: whether the service is alive, whether it can work, and its metrics.
import { BlockList } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { fail } from '../../contract/errors.ts'
import type { Operation } from '../../contract/operation.ts'
import { CHECK_PENDING } from '../../contract/readiness.ts'
import { allows } from '../../contract/scopes.ts'
import { toFailure } from '../../http/problem.ts'
import type { Auth } from './auth.ts'
import { NO_QUERY } from './document/openapi.ts'
import { operationOf } from './route.ts'

export interface HealthCheck {
  name: string
  /** Rejects, or returns a sentence, when something is wrong. */
  check(): Promise<string | undefined>
  /** A sentence where somebody should look, though the service can work. */
  warn?(): Promise<string | undefined>
}

export interface Metrics {
  /** Of the service as a whole. */
  registry: Registry
}

const CHECK_TIMEOUT_MS = 3000

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')
loopback.addSubnet('::ffff:127.0.0.0', 104, 'ipv6')

export function createMetrics(openStreams: () => number): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  new Gauge({
    name: 'gamekeeper_streams_open',
    help: 'Answers that stay open',
    registers: [registry],
    collect() {
      this.set(openStreams())
    },
  })
  return { registry }
}

/** Answers counted in one go: finding a counter by its labels costs more than counting (`npm run bench -- api`). */
const COUNTED_TOGETHER = 64

export function countRequests(app: FastifyInstance, { registry }: Metrics): void {
  const counters = new Map<Operation | undefined, Map<number, { elapsedMs: number[]; flush(): void }>>()
  const flush = () => {
    for (const byStatus of counters.values()) for (const counter of byStatus.values()) counter.flush()
  }
  const seconds = new Histogram({
    name: 'gamekeeper_http_request_seconds',
    help: 'Time from a request to the end of its answer',
    labelNames: ['operation'] as const,
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
    registers: [registry],
    collect: flush,
  })
  const answers = new Counter({
    name: 'gamekeeper_http_answers_total',
    help: 'Answers by operation and status',
    labelNames: ['operation', 'status'] as const,
    registers: [registry],
    collect: flush,
  })

  function newCounter(operation: Operation | undefined, status: number) {
    const id = operation?.id ?? 'other'
    const [histogram, total] = [seconds.labels(id), answers.labels(id, String(status))]
    const elapsedMs: number[] = []
    const counter = {
      elapsedMs,
      flush() {
        for (const ms of elapsedMs) histogram.observe(ms / 1000)
        total.inc(elapsedMs.length)
        elapsedMs.length = 0
      },
    }
    counters.set(operation, (counters.get(operation) ?? new Map()).set(status, counter))
    return counter
  }

  app.addHook('onResponse', (request, reply, done) => {
    const operation = operationOf(request)
    const counter = counters.get(operation)?.get(reply.statusCode) ?? newCounter(operation, reply.statusCode)
    if (counter.elapsedMs.push(reply.elapsedTime) === COUNTED_TOGETHER) counter.flush()
    done()
  })
}

export function healthRoutes(
  app: FastifyInstance,
  deps: {
    auth: Auth
    metrics: Metrics
    /** Of single servers, as text. */
    serverMetrics: () => Promise<string>
    checks: readonly HealthCheck[]
    log: Logger
  },
): void {
  const schema = { hide: true, querystring: NO_QUERY }
  app.get('/healthz', { schema }, async () => ({ status: 'ok' }))

  app.get('/readyz', { schema }, async (_request, reply) => {
    const results = await Promise.all(deps.checks.map((check) => runCheck(check, deps.log)))
    const ready = results.every((result) => result.fault === null)
    const warnings = results.flatMap(({ name, warning }) => (warning === null ? [] : [[name, warning]]))
    return reply.code(ready ? 200 : 503).send({
      status: ready ? 'ready' : 'not ready',
      checks: Object.fromEntries(results.map(({ name, fault }) => [name, fault ?? 'ok'])),
      ...(warnings.length > 0 ? { warnings: Object.fromEntries(warnings) } : {}),
    })
  })

  app.get('/metrics', { schema }, async (request, reply) => {
    // Games share our loopback: without a token it answers for the service as a whole, never for single servers.
    const hasToken = request.headers.authorization !== undefined
    if (hasToken || !isLocal(request)) {
      const actor = await deps.auth.authenticate(request, reply)
      if (!allows(actor.scopes, '*')) throw fail('forbidden', 'The token lacks the scope *.')
    }
    const { registry } = deps.metrics
    const ofService = await registry.metrics()
    return reply.type(registry.contentType).send(hasToken ? ofService + (await deps.serverMetrics()) : ofService)
  })
}

interface CheckResult {
  name: string
  fault: string | null
  warning: string | null
}

async function runCheck({ name, check, warn }: HealthCheck, log: Logger): Promise<CheckResult> {
  const timeout = new Promise<string>((resolve) => setTimeout(resolve, CHECK_TIMEOUT_MS, CHECK_PENDING).unref())
  try {
    const fault = (await Promise.race([check(), timeout])) ?? null
    return { name, fault, warning: (await Promise.race([warn?.(), timeout])) ?? null }
  } catch (error) {
    log.error({ err: error, check: name }, 'not ready')
    const { code, detail } = toFailure(error)
    return {
      name,
      fault: code === 'internal' ? 'does not work; the log says why' : `${code}: ${detail}`,
      warning: null,
    }
  }
}

/** Those who ask meanwhile, and for `keptMs` after, share one run and its result. */
export function atMostOncePer(keptMs: number, run: () => Promise<void>): () => Promise<void> {
  let latest: Promise<void> | undefined
  return () => {
    latest ??= run().finally(() => setTimeout(() => (latest = undefined), keptMs).unref())
    return latest
  }
}

/** A proxy on this machine speaks for somebody else, and says so in a header. */
function isLocal(request: FastifyRequest): boolean {
  const address = request.socket.remoteAddress ?? ''
  const forwarded = request.headers['x-forwarded-for'] ?? request.headers.forwarded
  return forwarded === undefined && loopback.check(address, address.includes(':') ? 'ipv6' : 'ipv4')
}
