// The zones as they are configured. Credentials are given by reference, so that the configuration can be shown around.
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import Type, { type Static } from 'typebox'
import { isDnsFault } from '../../dns/provider.ts'
import { isName } from '../../dns/records.ts'
import { createValidators } from '../../http/validation.ts'
import { createRemote } from './providers.ts'

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

const Common = {
  zone: Domain,
  target: Type.Union([Host, Type.Array(Host, { minItems: 1, maxItems: 8 })]),
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
const SCHEMAS = {
  embedded: EmbeddedConfig,
  powerdns: PowerDnsConfig,
  rfc2136: Rfc2136Config,
  cloudflare: CloudflareConfig,
}

type Reference = Static<typeof Reference>
type Configured<S extends { provider: string }> = S
export type ZoneConfig =
  | Configured<Static<typeof EmbeddedConfig>>
  | Configured<Static<typeof PowerDnsConfig>>
  | Configured<Static<typeof Rfc2136Config>>
  | Configured<Static<typeof CloudflareConfig>>

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

export class ZoneFault extends Error {}

/** JSON, or the path of a file that holds it. Throws ZoneFault naming everything that is wrong. */
export function parseZones(text: string, env: Record<string, string | undefined>): Zone[] {
  const list = parseJson(text.trimStart().startsWith('[') ? text : readText(text, 'the file of zones'))
  if (!Array.isArray(list)) throw new ZoneFault('must be a JSON list of zones')
  const faults: string[] = []
  const zones = list.flatMap((item, index) => {
    try {
      return [readZone(item, env)]
    } catch (error) {
      if (!(error instanceof ZoneFault)) throw error
      faults.push(`[${index}] ${error.message}`)
      return []
    }
  })
  const names = zones.map(({ zone }) => zone)
  for (const name of new Set(names.filter((zone, index) => names.indexOf(zone) !== index)))
    faults.push(`has ${name} twice`)
  if (faults.length > 0) throw new ZoneFault(faults.join('; '))
  return zones.map((zone) => ({ ...zone, reserved: [...zone.reserved, ...namesInUse(zone, names)] }))
}

/** Names below the zone that the configuration itself gives a meaning: name servers, targets, other zones. */
function namesInUse({ zone, targets, config }: Zone, zones: readonly string[]): string[] {
  const nameServers = config.provider === 'embedded' ? (config.nameServers ?? []) : []
  const below = [...nameServers, ...targets, ...zones].map((name) => name.toLowerCase().replace(/\.$/, ''))
  return below
    .filter((name) => name.endsWith(`.${zone}`))
    .map(
      (name) =>
        name
          .slice(0, -(zone.length + 1))
          .split('.')
          .at(-1) ?? '',
    )
}

function readZone(item: unknown, env: Record<string, string | undefined>): Zone {
  const provider = (item as { provider?: unknown } | null)?.provider
  if (typeof provider !== 'string' || !(provider in SCHEMAS)) {
    throw new ZoneFault(`provider must be one of ${Object.keys(SCHEMAS).join(', ')}`)
  }
  const validate = createValidators()('body').compile(SCHEMAS[provider as keyof typeof SCHEMAS])
  if (!validate(item)) {
    const faults = (validate.errors ?? []).map(({ instancePath, message, params }) => {
      const unknown = (params as { additionalProperty?: string }).additionalProperty
      return unknown ? `${unknown} is not a known setting` : `${instancePath.slice(1) || 'it'} ${message}`
    })
    throw new ZoneFault([...new Set(faults)].join(', '))
  }
  const config = item as ZoneConfig
  const targets = [config.target].flat().map((target) => target.toLowerCase().replace(/\.$/, ''))
  const faults = targetFaults(targets)
  let credential = ''
  try {
    credential = credentialOf(config, env)
    checkSettings(config, credential)
  } catch (error) {
    if (!(error instanceof ZoneFault)) throw error
    faults.push(error.message)
  }
  if (faults.length > 0) throw new ZoneFault(faults.join(', '))
  return {
    zone: config.zone.toLowerCase().replace(/\.$/, ''),
    targets,
    ttl: config.ttl ?? 60,
    reserved: (config.reserved ?? []).map((name) => name.toLowerCase()),
    maxPerServer: config.maxPerServer ?? null,
    config,
    credential,
  }
}

function targetFaults(targets: readonly string[]): string[] {
  const hosts = targets.filter((target) => isIP(target) === 0)
  const bad = hosts.find((host) => !isName(host) || !host.includes('.'))
  if (bad !== undefined) return [`target ${bad} is neither an address nor a host name`]
  return targets.length > 1 && hosts.length > 0 ? ['target may be several addresses, or one host name'] : []
}

/** What only the provider can tell, such as a secret that is not base64. Its sentences hold no credential. */
function checkSettings(config: ZoneConfig, credential: string): void {
  try {
    createRemote({ config, credential })
  } catch (error) {
    if (isDnsFault(error)) throw new ZoneFault(error.message.replace(/\.$/, ''))
    throw error
  }
}

function credentialOf(config: ZoneConfig, env: Record<string, string | undefined>): string {
  if (config.provider === 'powerdns') return follow(config.apiKey, env)
  if (config.provider === 'rfc2136') return follow(config.keySecret, env)
  if (config.provider === 'cloudflare') return follow(config.token, env)
  return ''
}

function follow(reference: Reference, env: Record<string, string | undefined>): string {
  if ('file' in reference) return readText(reference.file, 'the credential').trim()
  const value = env[reference.env]
  if (!value) throw new ZoneFault(`the variable ${reference.env} is not set`)
  return value
}

function readText(path: string, what: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    throw new ZoneFault(`${what} cannot be read from ${path}`)
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new ZoneFault('is not valid JSON')
  }
}
