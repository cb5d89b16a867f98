// The only file that reads the environment. All faults are reported together, so that they can be fixed in one go.
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { DEFAULT_GAME_UIDS } from '../contract/fixed-limits.ts'
import { type KeepLocal, parseKeepLocal } from '../contract/keep-local.ts'
import {
  PlaceFault,
  parseS3Keys,
  parseS3Place,
  type S3Keys,
  type S3Place,
  s3KeyFaults,
  s3KeysOf,
} from '../contract/offsite-place.ts'
import { TOKEN_FORM } from '../contract/tokens.ts'
import type { Zone } from './subdomains/zone-config.ts'
import { parseZones, ZoneFault } from './subdomains/zones.ts'

export interface Config {
  host: string
  port: number
  dataDir: string
  adminToken: string | null
  /** How callers reach us, without a trailing slash; null: by the address that we listen on. */
  publicUrl: string | null
  databaseUrl: string | null
  logLevel: (typeof LOG_LEVELS)[number]
  /** `auto`: for people on a terminal, JSON elsewhere. */
  logFormat: (typeof LOG_FORMATS)[number]
  requestsPerMinute: number
  trustedProxies: string[]
  /** Origins whose pages may call us from a browser; `*` for any. */
  corsOrigins: string[]
  activityRetentionDays: number
  /** How long deleted files are kept. */
  trashHours: number
  /** The largest single file that may be uploaded. */
  maxUploadBytes: number
  zones: Zone[]
  /** Where the embedded DNS server listens, if a zone asks for it. */
  dnsHost: string
  dnsPort: number
  /** How long a deleted server can be brought back. */
  deletedServerDays: number
  /** How long a released subdomain is kept from other servers. */
  nameHoldDays: number
  /** 32 bytes that sign links and cursors and seal the activity; null: a file in the data directory keeps them. */
  secret: Buffer | null
  /** 32 bytes that seal backups at rest; null: they are not sealed. */
  backupKey: Buffer | null
  /** How many backups may be made at once. */
  backupsAtOnce: number
  /** What one backup may read in a second; null for no limit. */
  backupBytesPerSecond: number | null
  /** The bucket that backups are mirrored to; null: none. */
  offsite: S3Place | null
  /** There where `offsite` is; perhaps also without it, for a bucket that is named on the command line. */
  offsiteKeys: S3Keys | null
  /** What may be sent to it in a second; null for no limit. */
  offsiteBytesPerSecond: number | null
  /** Nothing is ever removed from it. */
  isOffsiteAppendOnly: boolean
  /** What of the backups stays on the disk once it is off-site; null: everything. */
  keepLocal: KeepLocal | null
  /** As root, the users of games: each server has its own. */
  gameUsers: { first: number; last: number }
  /** Whether games may run where nothing keeps them away from everything else. */
  allowUnisolatedGames: boolean
  /** Where a container engine listens; null: where they usually do. */
  containerSocket: string | null
  /** For TLS without a proxy; null: plain HTTP. */
  tls: { certFile: string; keyFile: string } | null
  /** Where keys are that are not in the data directory. */
  keyFiles: string[]
}

export class ConfigFault extends Error {
  readonly faults: readonly string[]
  constructor(faults: readonly string[]) {
    super(`The configuration is not valid:\n${faults.map((fault) => `  ${fault}`).join('\n')}`)
    this.faults = faults
  }
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
const LOG_FORMATS = ['auto', 'pretty', 'json'] as const
const PREFIX = 'GAMEKEEPER_'

type Read<T> = (text: string) => T

/** A fault that a reader finds; the name of the variable is put before it. */
class Fault extends Error {}

export function readConfig(env: Record<string, string | undefined>): Config {
  const faults: string[] = []
  const known = new Set<string>()

  function setting<T, D>(name: string, fallback: D, read: Read<T>): T | D {
    const variable = PREFIX + name
    known.add(variable)
    const text = env[variable]
    if (text === undefined || text === '') return fallback
    try {
      return read(text)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      faults.push(`${variable} ${error.message}`)
      return fallback
    }
  }

  function oneKey(inline: Buffer | null, fromFile: Buffer | null): Buffer | null {
    if (inline && fromFile) faults.push(`${PREFIX}BACKUP_KEY and ${PREFIX}BACKUP_KEY_FILE are both set`)
    return inline ?? fromFile
  }

  function bothFiles(certFile: string | null, keyFile: string | null): Config['tls'] {
    if (certFile !== null && keyFile !== null) return { certFile, keyFile }
    if (certFile !== keyFile) faults.push(`${PREFIX}TLS_CERT and ${PREFIX}TLS_KEY go together, and only one is set`)
    return null
  }

  const config: Config = {
    host: setting('HOST', '127.0.0.1', hostname),
    port: setting('PORT', 8080, integer(0, 65535)),
    dataDir: setting('DATA_DIR', resolve('data'), path),
    adminToken: setting('ADMIN_TOKEN', null, adminToken),
    publicUrl: setting('PUBLIC_URL', null, httpUrl),
    databaseUrl: setting('DATABASE_URL', null, postgresUrl),
    logLevel: setting('LOG_LEVEL', 'info', oneOf(LOG_LEVELS)),
    logFormat: setting('LOG_FORMAT', 'auto', oneOf(LOG_FORMATS)),
    requestsPerMinute: setting('RATE_LIMIT', 6000, integer(0, 10_000_000)),
    trustedProxies: setting('TRUSTED_PROXIES', [], addresses),
    corsOrigins: setting('CORS_ORIGINS', [], origins),
    activityRetentionDays: setting('ACTIVITY_RETENTION_DAYS', 365, integer(1, 36_500)),
    trashHours: setting('TRASH_HOURS', 24, integer(0, 8760)),
    maxUploadBytes: setting('MAX_UPLOAD_BYTES', 100 * 2 ** 30, integer(1, Number.MAX_SAFE_INTEGER)),
    zones: setting('ZONES', [], (text) => zones(text, env)),
    dnsHost: setting('DNS_HOST', '0.0.0.0', hostname),
    dnsPort: setting('DNS_PORT', 53, integer(0, 65535)),
    deletedServerDays: setting('DELETED_SERVER_DAYS', 7, integer(0, 365)),
    nameHoldDays: setting('NAME_HOLD_DAYS', 7, integer(0, 365)),
    secret: setting('SECRET', null, secret),
    backupKey: oneKey(setting('BACKUP_KEY', null, secret), setting('BACKUP_KEY_FILE', null, secretFile)),
    backupsAtOnce: setting('BACKUPS_AT_ONCE', 2, integer(1, 64)),
    backupBytesPerSecond: setting('BACKUP_RATE', null, integer(65_536, Number.MAX_SAFE_INTEGER)),
    offsite: setting('OFFSITE', null, s3Place),
    offsiteKeys: setting('OFFSITE_KEYS_FILE', null, s3KeysFile) ?? s3KeysOf(env),
    offsiteBytesPerSecond: setting('OFFSITE_RATE', null, integer(65_536, Number.MAX_SAFE_INTEGER)),
    isOffsiteAppendOnly: setting('OFFSITE_APPEND_ONLY', '0', oneOf(['0', '1'])) === '1',
    keepLocal: setting('KEEP_LOCAL', null, keepLocal),
    gameUsers: setting('GAME_UIDS', DEFAULT_GAME_UIDS, userRange),
    allowUnisolatedGames: setting('ALLOW_UNISOLATED', '0', oneOf(['0', '1'])) === '1',
    containerSocket: setting('CONTAINER_SOCKET', socketOf(env.DOCKER_HOST), path),
    tls: bothFiles(setting('TLS_CERT', null, path), setting('TLS_KEY', null, path)),
    keyFiles: ['TLS_KEY', 'BACKUP_KEY_FILE', 'OFFSITE_KEYS_FILE'].flatMap((name) => setting(name, null, path) ?? []),
  }
  if (config.offsite && !env.GAMEKEEPER_OFFSITE_KEYS_FILE)
    faults.push(...(config.offsiteKeys ? s3KeyFaults(env) : [NO_OFFSITE_KEYS]))
  if (config.keepLocal && !env[`${PREFIX}OFFSITE`])
    faults.push(`${PREFIX}KEEP_LOCAL needs ${PREFIX}OFFSITE: what leaves the disk has to be somewhere`)
  faults.push(...misspelt(env, known))
  if (faults.length > 0) throw new ConfigFault(faults)
  return config
}

/** A variable that we do not know is a fault: it was meant to do something. */
function misspelt(env: Record<string, string | undefined>, known: ReadonlySet<string>): string[] {
  const ours = Object.keys(env).filter((name) => name.startsWith(PREFIX) && !name.startsWith(`${PREFIX}TEST_`))
  return ours
    .filter((name) => !known.has(name) && !CLIENT_SIDE.has(name))
    .map((name) => `${name} is not a known setting`)
}

const NO_OFFSITE_KEYS = `${PREFIX}OFFSITE needs keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ${PREFIX}OFFSITE_KEYS_FILE`

/** Read by the command line, not by the service. */
const CLIENT_SIDE = new Set(['GAMEKEEPER_URL', 'GAMEKEEPER_TOKEN'])

const integer =
  (min: number, max: number): Read<number> =>
  (text) => {
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < min || value > max)
      throw new Fault(`must be a whole number from ${min} to ${max}`)
    return value
  }

const oneOf =
  <const V extends readonly string[]>(values: V): Read<V[number]> =>
  (text) => {
    if (!values.includes(text)) throw new Fault(`must be one of ${values.join(', ')}`)
    return text
  }

const keepLocal: Read<KeepLocal> = (text) => {
  const keep = parseKeepLocal(text)
  if (!keep) throw new Fault('must be a size such as 200GB, or a number of days such as 30d')
  return keep
}

/** Users of people and of the system come first. */
const LOWEST_GAME_UID = 1000

const userRange: Read<Config['gameUsers']> = (text) => {
  const [, first, last] = /^(\d{1,10})-(\d{1,10})$/.exec(text)?.map(Number) ?? []
  if (first === undefined || last === undefined || first < LOWEST_GAME_UID || last < first || last > 4_294_967_293)
    throw new Fault(`must be a range of user ids from ${LOWEST_GAME_UID} on, such as 1900000000-1900065535`)
  return { first, last }
}

/** As the programs of engines read it. One on another machine has none of our files. */
const socketOf = (host: string | undefined) => (host?.startsWith('unix:///') ? host.slice('unix://'.length) : null)

const path: Read<string> = (text) => resolve(text)

const hostname: Read<string> = (text) => {
  if (isIP(text) === 0 && !/^[a-zA-Z0-9.-]{1,253}$/.test(text)) throw new Fault('must be an address or a host name')
  return text
}

const adminToken: Read<string> = (text) => {
  if (!TOKEN_FORM.test(text)) throw new Fault('must have the form gk_<id>_<64 hex digits>')
  return text
}

const secret: Read<Buffer> = (text) => {
  if (!/^[0-9a-fA-F]{64}$/.test(text)) throw new Fault('must be 64 hex digits')
  return Buffer.from(text, 'hex')
}

const secretFile: Read<Buffer> = (path) => {
  try {
    return secret(readFileSync(path, 'utf8').trim())
  } catch (error) {
    if (error instanceof Fault) throw new Fault(`names a file whose content ${error.message}`)
    throw new Fault('names a file that cannot be read')
  }
}

const s3Place: Read<S3Place> = (text) => orFault(() => parseS3Place(text))

const s3KeysFile: Read<S3Keys> = (path) => {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    throw new Fault('names a file that cannot be read')
  }
  return orFault(() => parseS3Keys(text), 'names a file that ')
}

function orFault<T>(read: () => T, before = ''): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof PlaceFault || error instanceof ZoneFault) throw new Fault(before + error.message)
    throw error
  }
}

function url(text: string, protocols: readonly string[]): URL {
  const parsed = URL.parse(text)
  if (!parsed || !protocols.includes(parsed.protocol))
    throw new Fault(`must be an address that starts with ${protocols.join(' or ')}//`)
  return parsed
}

const httpUrl: Read<string> = (text) => {
  const { href, search, hash } = url(text, ['http:', 'https:'])
  if (search || hash) throw new Fault('must have no query and no fragment')
  return href.replace(/\/+$/, '')
}

const postgresUrl: Read<string> = (text) => {
  url(text, ['postgres:', 'postgresql:'])
  return text
}

const addresses: Read<string[]> = (text) => {
  const list = text.split(',').map((part) => part.trim())
  const wrong = list.filter((part) => !isAddressRange(part))
  if (wrong.length > 0)
    throw new Fault(`must be addresses or ranges such as 10.0.0.0/8, with commas between; not ${wrong.join(', ')}`)
  return list
}

const origins: Read<string[]> = (text) => {
  const list = text.split(',').map((part) => part.trim())
  const wrong = list.filter((part) => !isOrigin(part) && !(part === '*' && list.length === 1))
  if (wrong.length > 0) {
    const quoted = wrong.map((part) => JSON.stringify(part)).join(', ')
    throw new Fault(`must be origins such as https://panel.example.org, with commas between, or * alone; not ${quoted}`)
  }
  return list
}

/** As a browser writes it: no path, not even a slash, and no port that the scheme implies. */
function isOrigin(text: string): boolean {
  const parsed = URL.parse(text)
  return parsed !== null && /^https?:$/.test(parsed.protocol) && parsed.origin === text
}

function isAddressRange(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
}

function zones(text: string, env: Record<string, string | undefined>): Zone[] {
  return orFault(() => parseZones(text, env))
}
