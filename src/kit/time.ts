// Times as text: RFC 3339, UTC, milliseconds. Formatting one costs more than most steps of a request, and the same few are
// formatted again and again, so they are cached (`npm run bench -- api`).
const CACHED_MAX = 4096
const cache = new Map<number, string>()

export function iso(at: number): string {
  let text = cache.get(at)
  if (text === undefined) {
    text = new Date(at).toISOString()
    if (cache.size >= CACHED_MAX) cache.clear()
    cache.set(at, text)
  }
  return text
}

export function isoOrNull(at: number | null): string | null {
  return at === null ? null : iso(at)
}
