// `{{NAME}}` in a text of a template: a variable, or something known of the server. Anything else in braces is text.

const PLACEHOLDER = /\{\{\s?([A-Za-z_][A-Za-z0-9_.-]{0,63})\s?\}\}/g

/** Known of every server, beside `port.NAME` for each port of the template. */
export const SERVER_FACTS = [
  'server.id',
  'server.name',
  'server.address',
  'server.port',
  'server.memoryMiB',
  'server.heapMiB',
] as const

export const namesIn = (text: string): string[] => [...text.matchAll(PLACEHOLDER)].map(([, name = '']) => name)

/** The name, where the text is one placeholder and nothing else. */
export function soleNameIn(text: string): string | null {
  const [match] = text.matchAll(PLACEHOLDER)
  return match?.[0] === text ? (match[1] ?? null) : null
}

/** What is filled in is never looked through for placeholders again. */
export function fillPlaceholders(text: string, fill: (name: string) => string): string {
  return text.replace(PLACEHOLDER, (_, name: string) => fill(name))
}
