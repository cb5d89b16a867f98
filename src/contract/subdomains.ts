import { operation } from './operation.ts'
import { BOUNDS } from './operation-bounds.ts'
import { Closed, Id, Nullable, OneOf, Page, PageQuery, ServerParams, type Static, Timestamp, Type } from './schema.ts'

/** `withdrawn`: out of DNS and kept for its server, which is deleted and can be brought back. */
export const SUBDOMAIN_STATUSES = ['pending', 'active', 'withdrawn', 'deleting', 'failed'] as const

/** Why the provider has not done what it should have; programs may switch on it. */
export const DNS_REASONS = {
  unreachable: 'The DNS provider does not answer. It is tried again.',
  refused: 'The DNS provider refuses our credentials. It is tried again.',
  rate_limited: 'The DNS provider asks us to wait. It is tried again.',
  zone_missing: 'The DNS provider does not have the zone. It is tried again.',
  zone_unconfigured: 'The zone is no longer in the configuration of the service.',
  conflict: 'The name has records that we did not make, and we do not touch those.',
  invalid: 'The DNS provider does not take such records.',
  server_error: 'The DNS provider failed. It is tried again.',
  unconfirmed: 'The DNS provider said yes, but the zone does not show it. It is tried again.',
} as const
export type DnsReason = keyof typeof DNS_REASONS

const Zone = Type.String({ minLength: 1, maxLength: 253 })

export const Subdomain = Type.Object({
  id: Id,
  serverId: Id,
  name: Type.String(),
  zone: Zone,
  hostname: Type.String(),
  connect: Type.String({ description: 'What a player types' }),
  status: OneOf(SUBDOMAIN_STATUSES),
  reason: Type.Union([
    Type.Object({ code: OneOf(Object.keys(DNS_REASONS) as [DnsReason, ...DnsReason[]]), detail: Type.String() }),
    Type.Null(),
  ]),
  records: Type.Array(
    Type.Object({ name: Type.String(), type: Type.String(), ttl: Type.Integer(), values: Type.Array(Type.String()) }),
  ),
  propagatedAt: Nullable(Timestamp),
  createdAt: Timestamp,
})
export type Subdomain = Static<typeof Subdomain>

export const NewSubdomain = Closed({
  name: Type.String({
    minLength: 1,
    maxLength: 63,
    pattern: '^[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?$',
    description: 'Letters, digits and hyphens; lowercased',
  }),
  zone: Zone,
})
export type NewSubdomain = Static<typeof NewSubdomain>

export const ZoneInfo = Type.Object({
  zone: Zone,
  provider: OneOf(['embedded', 'powerdns', 'rfc2136', 'cloudflare']),
  ttl: Type.Integer(),
  targets: Type.Array(Type.String()),
  used: Type.Integer({ description: 'How many subdomains the server has in this zone' }),
  limit: Nullable(Type.Integer()),
})
export type ZoneInfo = Static<typeof ZoneInfo>

const FINDING_KINDS = ['missing', 'altered', 'conflict', 'unanswered', 'orphan', 'unreachable'] as const

export const DnsFinding = Type.Object({
  zone: Zone,
  hostname: Type.String(),
  kind: OneOf(FINDING_KINDS),
  detail: Type.String(),
  repaired: Type.Boolean({ description: 'Whether it is right again by now; a repair that takes longer goes on' }),
})
export type DnsFinding = Static<typeof DnsFinding>

const example = {
  id: 'sub_01k9zq6m3t8v5w2x7y4c1b6d9e',
  serverId: 'srv_01k9zq6m3t8v5w2x7y4c1b6d9e',
  name: 'castle',
  zone: 'play.example.org',
  hostname: 'castle.play.example.org',
  connect: 'castle.play.example.org',
  status: 'active',
  reason: null,
  records: [
    { name: 'castle.play.example.org', type: 'A', ttl: 60, values: ['203.0.113.7'] },
    {
      name: '_minecraft._tcp.castle.play.example.org',
      type: 'SRV',
      ttl: 60,
      values: ['0 0 25566 castle.play.example.org'],
    },
  ],
  propagatedAt: '2026-11-15T00:00:01.000Z',
  createdAt: '2026-11-15T00:00:00.000Z',
}

/** How long the provider has to confirm a deletion before it is answered all the same. */
export const DELETION_ANSWER_MS = 5000

const tag = 'Subdomains'
const base = '/subdomains/{serverId}/subdomains'
const params = ServerParams
const SubdomainParams = Closed({ ...ServerParams.properties, subdomainId: Id })

export const listZones = operation({
  id: 'listZones',
  method: 'GET',
  path: '/subdomains/{serverId}/zones',
  tag,
  summary: 'List the zones in which the server can have subdomains',
  scope: 'subdomains:read',
  bound: BOUNDS.zones,
  params,
  query: Closed({ ...PageQuery }),
  answers: {
    200: {
      description: 'A page of zones',
      schema: Page(ZoneInfo),
      example: {
        data: [
          { zone: 'play.example.org', provider: 'embedded', ttl: 60, targets: ['203.0.113.7'], used: 1, limit: 2 },
        ],
        nextCursor: null,
      },
    },
  },
  errors: [],
})

export const listSubdomains = operation({
  id: 'listSubdomains',
  method: 'GET',
  path: base,
  tag,
  summary: 'List the subdomains of a server',
  description: 'Newest first.',
  scope: 'subdomains:read',
  bound: BOUNDS.page,
  params,
  query: Closed({ ...PageQuery }),
  answers: {
    200: {
      description: 'A page of subdomains',
      schema: Page(Subdomain),
      example: { data: [example], nextCursor: null },
    },
  },
  errors: [],
})

export const readSubdomain = operation({
  id: 'readSubdomain',
  method: 'GET',
  path: `${base}/{subdomainId}`,
  tag,
  summary: 'Read one subdomain',
  scope: 'subdomains:read',
  bound: BOUNDS.rows,
  params: SubdomainParams,
  answers: { 200: { description: 'The subdomain', schema: Subdomain, example } },
  errors: [],
})

export const createSubdomain = operation({
  id: 'createSubdomain',
  method: 'POST',
  path: base,
  tag,
  summary: 'Give a server a subdomain',
  description:
    'Answers at once with the subdomain as `pending`; it is `active` when the provider has confirmed its records, and ' +
    '`propagatedAt` says when the authoritative servers answered with them.',
  scope: 'subdomains:write',
  bound: BOUNDS.body,
  params,
  body: NewSubdomain,
  bodyExample: { name: 'castle', zone: 'play.example.org' },
  answers: {
    201: {
      description: 'The subdomain',
      schema: Subdomain,
      example: { ...example, status: 'pending', propagatedAt: null },
    },
  },
  errors: [
    'subdomain_taken',
    'subdomain_limit_reached',
    'server_busy',
    'idempotency_conflict',
    'too_large',
    'unsupported_media_type',
  ],
})

export const deleteSubdomain = operation({
  id: 'deleteSubdomain',
  method: 'DELETE',
  path: `${base}/{subdomainId}`,
  tag,
  summary: 'Delete a subdomain',
  description:
    'The records leave DNS before the subdomain leaves the list. **204** once the provider has confirmed it; **202** if it ' +
    `has not within ${DELETION_ANSWER_MS / 1000} seconds, and the work goes on.`,
  scope: 'subdomains:write',
  bound: BOUNDS.rows,
  params: SubdomainParams,
  answers: {
    204: { description: 'Gone, from DNS and from the list' },
    202: { description: 'On its way out', schema: Subdomain, example: { ...example, status: 'deleting' } },
  },
  errors: [],
})

export const checkDns = operation({
  id: 'checkDns',
  method: 'POST',
  path: '/dns/check',
  tag,
  summary: 'Compare DNS with what it should hold',
  description:
    'Records of ours that are `missing` or `altered`, not yet answered by the name servers (`unanswered`), kept out by ' +
    'records of others (`conflict`) or owned by nobody (`orphan`), and zones whose provider does not answer ' +
    '(`unreachable`). With `repair` they are put right where they can be. Records that we did not make are never touched. ' +
    'Answers within 5 seconds. Needs a token for all servers.',
  scope: 'subdomains:write',
  bound: BOUNDS.zones,
  body: Closed({ repair: Type.Optional(Type.Boolean({ default: false })) }),
  bodyExample: { repair: true },
  answers: {
    200: {
      description: 'What was found',
      schema: Type.Object({ zones: Type.Integer(), subdomains: Type.Integer(), findings: Type.Array(DnsFinding) }),
      example: {
        zones: 1,
        subdomains: 12,
        findings: [
          {
            zone: 'play.example.org',
            hostname: 'castle.play.example.org',
            kind: 'missing',
            detail: 'The A record of castle.play.example.org is missing.',
            repaired: true,
          },
        ],
      },
    },
  },
  errors: ['idempotency_conflict', 'too_large', 'unsupported_media_type'],
})

export const SUBDOMAIN_OPERATIONS = [
  listZones,
  listSubdomains,
  readSubdomain,
  createSubdomain,
  deleteSubdomain,
  checkDns,
] as const
