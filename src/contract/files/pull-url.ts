// What can be said of a URL to fetch from without asking anybody. Control asks before it queues work, the agent at every redirect.
import { fail } from '../errors.ts'

export function parsePullUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base)
  if (!url) throw fail('invalid_url', 'This is not a URL.')
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw fail('invalid_url', 'Only http and https URLs are supported.')
  if (url.username || url.password) throw fail('invalid_url', 'URLs with credentials are not supported.')
  return url
}
