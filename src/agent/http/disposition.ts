// Content-Disposition, read from a part of a form (RFC 7578) and written for a download (RFC 6266).
import { fail } from '../../contract/errors.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export interface FormField {
  name: string
  /** Undefined for a field that is not a file. */
  filename: string | undefined
}

export function parseDisposition(header: Buffer | undefined): FormField {
  const text = decode(header)
  if (!/^form-data\s*(;|$)/i.test(text)) throw fail('invalid_request', 'A part has no Content-Disposition: form-data.')
  const parameters = new Map<string, string>()
  // Every character is matched in one way only: where a backslash could be read in two, a row of them would take for ever.
  const pattern = /;\s*([a-z]+\*?)\s*=\s*(?:"((?:\\["\\]|\\(?!["\\])|[^"\\])*)"|([^\s;"]*))/giy
  pattern.lastIndex = text.search(/;|$/)
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    const [, key = '', quoted, plain = ''] = match
    if (!parameters.has(key.toLowerCase()))
      parameters.set(key.toLowerCase(), quoted?.replace(/\\(["\\])/g, '$1') ?? plain)
  }
  const extended = parameters.get('filename*')
  const filename = extended === undefined ? unescapeBrowser(parameters.get('filename')) : decodeExtended(extended)
  return { name: unescapeBrowser(parameters.get('name')) ?? '', filename }
}

function decode(header: Buffer | undefined): string {
  try {
    return utf8.decode(header ?? Buffer.alloc(0))
  } catch (error) {
    throw fail('invalid_path', 'The name of a file is not valid UTF-8.', error)
  }
}

/** What browsers and curl write for the three characters that would break the header. */
function unescapeBrowser(value: string | undefined): string | undefined {
  return value?.replace(/%(22|0d|0a)/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

/** `UTF-8''na%C3%AFve.txt`: not in the standard for forms, and sent by some libraries. */
function decodeExtended(value: string): string {
  const [, encoded] = /^utf-8'[^']*'(.*)$/is.exec(value) ?? []
  try {
    if (encoded !== undefined) return decodeURIComponent(encoded)
  } catch {
    // Refused below, as any other that cannot be read.
  }
  throw fail('invalid_path', 'The name of a file is not valid UTF-8.')
}

/** Always an attachment: what a server holds is never shown as a page of ours. */
export function attachment(name: string): string {
  // Quotes and backslashes would end or escape, and a percent sign is decoded by some browsers: all become plain.
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  const encoded = encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return plain === name
    ? `attachment; filename="${name}"`
    : `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`
}

/**
 * For bytes that a tenant chose: whatever a browser makes of them, and however they are opened, they run no script, belong to no
 * origin of ours, and are shown in no frame.
 */
export const untrustedHeaders = (name: string) => ({
  'content-disposition': attachment(name),
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
})
