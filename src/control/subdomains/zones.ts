// Reads the zones from the configuration, checks them and follows the references to their credentials.
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { TSchema } from '../../contract/schema.ts'
import { isDnsFault } from '../../dns/provider.ts'
import { isName } from '../../dns/records.ts'
import { validatorOf } from '../../http/validation.ts'
import { createRemote } from './providers.ts'
import { AnyZone, type Reference, Target, ZONE_SCHEMAS, type Zone, type ZoneConfig } from './zone-config.ts'

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
  const { provider, target } = (item ?? {}) as { provider?: unknown; target?: unknown }
  const isKnown = isProvider(provider)
  const faults = isKnown ? [] : [`provider must be one of ${Object.keys(ZONE_SCHEMAS).join(', ')}`]
  faults.push(...formFaults(item, isKnown ? ZONE_SCHEMAS[provider] : AnyZone))
  const isFormed = faults.length === 0
  const targets = isTarget(target) ? [target].flat().map((each) => each.toLowerCase().replace(/\.$/, '')) : []
  faults.push(...targetFaults(targets))
  const config = item as ZoneConfig
  let credential = ''
  try {
    if (isFormed) {
      credential = credentialOf(config, env)
      checkSettings(config, credential)
    }
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

const isProvider = (name: unknown): name is keyof typeof ZONE_SCHEMAS =>
  typeof name === 'string' && Object.hasOwn(ZONE_SCHEMAS, name)

const isTarget = (value: unknown): value is ZoneConfig['target'] => formFaults(value, Target).length === 0

function formFaults(value: unknown, schema: TSchema): string[] {
  const validate = validatorOf('body').compile(schema)
  if (validate(value)) return []
  const faults = (validate.errors ?? []).map(({ instancePath, message, params }) => {
    const unknown = (params as { additionalProperty?: string }).additionalProperty
    return unknown ? `${unknown} is not a known setting` : `${instancePath.slice(1) || 'it'} ${message}`
  })
  return [...new Set(faults)]
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
