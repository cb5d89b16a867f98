// The configured zones. Credentials are given by reference, so that the configuration can be shown to others.
import { type Static, Type } from '../../contract/schema.ts'

const Closed = { additionalProperties: false }
const Reference = Type.Union([
  Type.Object({ env: Type.String({ minLength: 1 }) }, Closed),
  Type.Object({ file: Type.String({ minLength: 1 }) }, Closed),
])
const Host = Type.String({ minLength: 1, maxLength: 253, pattern: '^[A-Za-z0-9._:-]+$' })
const Endpoint = Type.Object({ host: Host, port: Type.Integer({ minimum: 1, maximum: 65535 }) }, Closed)
const Domain = Type.String({
  maxLength: 253,
  pattern: '^(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\\.)+[A-Za-z0-9-]{2,63}\\.?$',
})

/** As `tsig-keygen` takes it: often one label only. */
const KeyName = Type.String({ maxLength: 253, pattern: '^[A-Za-z0-9_-]{1,63}(?:\\.[A-Za-z0-9_-]{1,63})*\\.?$' })

export const Target = Type.Union([Host, Type.Array(Host, { minItems: 1, maxItems: 8 })])
const Common = {
  zone: Domain,
  target: Target,
  ttl: Type.Optional(Type.Integer({ minimum: 1, maximum: 86_400, default: 60 })),
  reserved: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 63 }), { maxItems: 1000, default: [] })),
  maxPerServer: Type.Optional(Type.Integer({ minimum: 0 })),
}
const nameServers = Type.Optional(Type.Array(Endpoint, { minItems: 1, maxItems: 8 }))

const EmbeddedConfig = Type.Object(
  {
    ...Common,
    provider: Type.Literal('embedded'),
    nameServers: Type.Optional(Type.Array(Host, { minItems: 1, maxItems: 8 })),
    nameServerAddresses: Type.Optional(Type.Record(Type.String(), Type.Array(Host, { minItems: 1 }))),
    contact: Type.Optional(Domain),
    negativeTtl: Type.Optional(Type.Integer({ minimum: 0, maximum: 86_400 })),
  },
  Closed,
)
const PowerDnsConfig = Type.Object(
  {
    ...Common,
    provider: Type.Literal('powerdns'),
    url: Type.String({ format: 'uri' }),
    apiKey: Reference,
    nameServers,
  },
  Closed,
)
const Rfc2136Config = Type.Object(
  {
    ...Common,
    provider: Type.Literal('rfc2136'),
    server: Endpoint,
    keyName: KeyName,
    keySecret: Reference,
    nameServers,
  },
  Closed,
)
const CloudflareConfig = Type.Object(
  {
    ...Common,
    ttl: Type.Optional(Type.Integer({ minimum: 60, maximum: 86_400, default: 60 })),
    provider: Type.Literal('cloudflare'),
    token: Reference,
    baseUrl: Type.Optional(Type.String({ format: 'uri' })),
  },
  Closed,
)
/** What can be said of a zone whose provider is not known: which other fields it has is not known either. */
export const AnyZone = Type.Object(Common)
export const ZONE_SCHEMAS = {
  embedded: EmbeddedConfig,
  powerdns: PowerDnsConfig,
  rfc2136: Rfc2136Config,
  cloudflare: CloudflareConfig,
}

export type Reference = Static<typeof Reference>
export type ZoneConfig =
  | Static<typeof EmbeddedConfig>
  | Static<typeof PowerDnsConfig>
  | Static<typeof Rfc2136Config>
  | Static<typeof CloudflareConfig>

export interface Zone {
  zone: string
  targets: string[]
  ttl: number
  /** Given out to nobody, besides the names that are reserved everywhere. */
  reserved: readonly string[]
  maxPerServer: number | null
  config: ZoneConfig
  /** What the configuration's reference led to. */
  credential: string
}
