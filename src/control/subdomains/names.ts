// Which names may be used. Pure.

/** Names that people take for the owner of the zone, also with a number after them. */
const RESERVED = [
  ...[
    'www',
    'web',
    'panel',
    'admin',
    'administrator',
    'root',
    'api',
    'app',
    'auth',
    'login',
    'sso',
    'account',
    'billing',
  ],
  ...['mail', 'email', 'smtp', 'imap', 'pop', 'pop3', 'webmail', 'mx', 'autodiscover', 'autoconfig', 'postmaster'],
  ...['ns', 'dns', 'hostmaster', 'localhost', 'gateway', 'vpn', 'ftp', 'sftp', 'ssh'],
  ...['cdn', 'static', 'assets', 'status', 'support', 'help', 'docs', 'blog', 'shop', 'store', 'cpanel', 'whm', 'git'],
  ...['abuse', 'security', 'wpad', 'isatap', 'gamekeeper', 'keeper', 'official', 'staff', 'system', 'internal'],
]

export type NameFault = 'form' | 'punycode' | 'length' | 'reserved' | 'lookalike'

export const NAME_FAULTS: Record<NameFault, string> = {
  form: 'must be letters, digits and hyphens, with no hyphen at either end',
  punycode: 'must not be an encoded international name',
  length: 'is too long for this zone',
  reserved: 'is reserved',
  lookalike: 'looks like a reserved name',
}

export function normaliseSubdomain(name: string): string {
  return name.toLowerCase()
}

/** A name in DNS has 253 characters at most, and the longest service (`_vintagestory._tcp.`) has to go before ours. */
const MOST_HOSTNAME = 253 - 19

export function nameFault(name: string, zone: { zone: string; reserved: readonly string[] }): NameFault | null {
  if (!/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(name)) return 'form'
  // The third and fourth place are kept for encodings: `xn--` is the one in use, the others are its future.
  if (/^..--/.test(name)) return 'punycode'
  if (name.length + 1 + zone.zone.length > MOST_HOSTNAME) return 'length'
  const reserved = [...RESERVED, ...zone.reserved]
  // `ns5` and `admin-1` are taken for one of several of those.
  const unnumbered = name.replace(/-?[0-9]+$/, '')
  if (reserved.includes(name) || reserved.includes(unnumbered)) return 'reserved'
  const shapes = [skeleton(name), skeleton(unnumbered)]
  return reserved.some((taken) => shapes.includes(skeleton(taken))) ? 'lookalike' : null
}

/** What is left of a name when letters that are taken for each other are made the same. */
export function skeleton(name: string): string {
  return name
    .replaceAll('-', '')
    .replaceAll('rn', 'm')
    .replaceAll('vv', 'w')
    .replace(/[0]/g, 'o')
    .replace(/[1i]/g, 'l')
    .replace(/5/g, 's')
}
