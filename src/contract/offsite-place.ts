// Where backups are mirrored, as the settings name it: a bucket, and the keys to it. Plain data, without a word about how
// it is reached.

export interface S3Place {
  bucket: string
  /** Without slashes at its ends; empty for the whole bucket. */
  prefix: string
  /** `https://host[:port]`; null: AWS's own. */
  endpoint: string | null
  /** Null: found from the endpoint, or by asking. */
  region: string | null
}

/** Secrets: never logged, never shown, never given to a game. */
export interface S3Keys {
  accessKeyId: string
  secretAccessKey: string
  sessionToken: string | null
}

/** What is wrong with a setting, as a sentence that follows the name of it. Never repeats a value that may be a secret. */
export class PlaceFault extends Error {}

const FORM = 'must have the form s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION'
const BUCKET = /^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$/
const SEGMENT = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,128}$/
const REGION = /^[A-Za-z0-9_-]{1,64}$/
const PREFIX_LENGTH_MAX = 512

export const isS3Url = (text: string) => text.startsWith('s3://')

export function parseS3Place(text: string): S3Place {
  const url = isS3Url(text) ? URL.parse(text) : null
  if (!url) throw new PlaceFault(FORM)
  if (url.username || url.password) throw new PlaceFault('must not contain keys: they have settings of their own')
  if (url.port) throw new PlaceFault(`${FORM}: the host and its port are the endpoint, not the bucket`)
  if (url.hash) throw new PlaceFault('must have no fragment')
  if (!BUCKET.test(url.hostname))
    throw new PlaceFault(`${FORM}: the name of a bucket has 3 to 63 letters, digits, - and .`)
  const known = ['endpoint', 'region']
  for (const name of url.searchParams.keys())
    if (!known.includes(name)) throw new PlaceFault(`has the unknown parameter ${JSON.stringify(name)}; ${FORM}`)
  const endpoint = url.searchParams.get('endpoint')
  const region = url.searchParams.get('region')
  if (region && !REGION.test(region)) throw new PlaceFault('has a region that is none, such as eu-central-1')
  return {
    bucket: url.hostname,
    prefix: parsePrefix(url.pathname),
    endpoint: endpoint ? parseEndpoint(endpoint, url.hostname) : null,
    region: region || null,
  }
}

/** The same place again, without anything secret. */
export function formatS3Place({ bucket, prefix, endpoint, region }: S3Place): string {
  const parameters = [...(endpoint ? [`endpoint=${endpoint}`] : []), ...(region ? [`region=${region}`] : [])]
  return `s3://${bucket}${prefix && `/${prefix}`}${parameters.length > 0 ? `?${parameters.join('&')}` : ''}`
}

function parsePrefix(pathname: string): string {
  const prefix = pathname.replace(/^\/|\/$/g, '')
  const isValid = prefix === '' || prefix.split('/').every((segment) => SEGMENT.test(segment))
  if (!isValid || prefix.length > PREFIX_LENGTH_MAX)
    throw new PlaceFault('has a prefix with something other than letters, digits, ".", "-" and "_" between its slashes')
  return prefix
}

function parseEndpoint(text: string, bucket: string): string {
  const url = URL.parse(text.includes('://') ? text : `https://${text}`)
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    throw new PlaceFault('has an endpoint that is not an address such as https://s3.example.org')
  if (url.pathname !== '/') throw new PlaceFault('has an endpoint with a path: the bucket comes after s3://')
  if (url.hostname.startsWith(`${bucket}.`))
    throw new PlaceFault('has an endpoint that begins with the bucket: leave it out there')
  return url.origin
}

/** Two lines, the id and the secret (a session token may follow), or what AWS's own tools read. */
export function parseS3Keys(text: string): S3Keys {
  const lines = text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^[#;]/.test(line))
  return toKeys(lines.some((line) => /^\[|=\s/.test(line) || /^aws_\w+\s*=/i.test(line)) ? fromIni(lines) : lines)
}

const INI_NAMES = ['aws_access_key_id', 'aws_secret_access_key', 'aws_session_token']
const ENV_NAMES = INI_NAMES.map((name) => name.toUpperCase())

type Environment = Readonly<Record<string, string | undefined>>

/** As AWS's own tools name them, without the line break that a file or a script has left at an end. Null: it has none. */
export function s3KeysOf(env: Environment): S3Keys | null {
  const [id, secret, token] = ENV_NAMES.map((name) => env[name]?.trim())
  return id && secret ? { accessKeyId: id, secretAccessKey: secret, sessionToken: token || null } : null
}

/** What is wrong with the keys in the environment, each in a sentence. */
export function s3KeyFaults(env: Environment): string[] {
  const isBroken = (name: string) => /\s/.test(env[name]?.trim() ?? '')
  return ENV_NAMES.filter(isBroken).map((name) => `${name} must have no space and no line break in it`)
}

/** The section `default`, or the only one. */
function fromIni(lines: readonly string[]): (string | undefined)[] {
  const sections = new Map<string, Map<string, string>>()
  let current = new Map<string, string>()
  for (const line of lines) {
    const [, section] = /^\[\s*(.*?)\s*\]$/.exec(line) ?? []
    const [, name, value] = /^(\w+)\s*=\s*(.*)$/.exec(line) ?? []
    if (section !== undefined) current = new Map()
    if (section !== undefined || sections.size === 0) sections.set(section ?? 'default', current)
    if (name !== undefined && value !== undefined) current.set(name.toLowerCase(), value)
  }
  const chosen = sections.get('default') ?? (sections.size === 1 ? [...sections.values()][0] : undefined)
  if (!chosen) throw new PlaceFault('has several sections and none is called [default]')
  return INI_NAMES.map((name) => chosen.get(name) || undefined)
}

function toKeys(values: readonly (string | undefined)[]): S3Keys {
  const [accessKeyId, secretAccessKey, sessionToken = null] = values
  const isPlain = [accessKeyId, secretAccessKey, sessionToken ?? 'x'].every((value) => value && !/\s/.test(value))
  if (!isPlain || !accessKeyId || !secretAccessKey || values.length > 3)
    throw new PlaceFault('must hold two lines, the id of the key and its secret, or a section as in ~/.aws/credentials')
  return { accessKeyId, secretAccessKey, sessionToken }
}
