// What can be said of a name while it is typed. Whether somebody else has it, only the service knows.

export type NameFault = 'form' | 'encoded' | 'long' | 'own'

const FORM = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
/** In DNS 253 characters, of which the longest service of a game takes 19. */
const HOSTNAME_MAX_CHARS = 234

export function nameFault(name: string, zone: string, own: readonly string[]): NameFault | null {
  if (!FORM.test(name)) return 'form'
  // The third and fourth place are kept for encoded names.
  if (/^..--/.test(name)) return 'encoded'
  const hostname = `${name}.${zone}`
  if (hostname.length > HOSTNAME_MAX_CHARS) return 'long'
  return own.includes(hostname) ? 'own' : null
}

/** As DNS keeps it; what a space was meant to be is a hyphen. */
export const normaliseName = (typed: string) => typed.toLowerCase().replace(/\s/g, '-').slice(0, 63)
