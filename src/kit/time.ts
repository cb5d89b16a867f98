// Times as they are told: RFC 3339, UTC, milliseconds. Formatting one costs more than much of a request does, and the
// same few are told again and again.
const REMEMBERED = 4096
const told = new Map<number, string>()

export function iso(at: number): string {
  let text = told.get(at)
  if (text === undefined) {
    text = new Date(at).toISOString()
    if (told.size >= REMEMBERED) told.clear()
    told.set(at, text)
  }
  return text
}

export function isoOrNull(at: number | null): string | null {
  return at === null ? null : iso(at)
}
