// Which pictures are shown, by their first bytes and never by their name. Only kinds that cannot hold a script: no SVG.

const SIGNATURES: readonly [type: string, offset: number, bytes: string][] = [
  ['image/png', 0, '\x89PNG\r\n\x1a\n'],
  ['image/jpeg', 0, '\xff\xd8\xff'],
  ['image/gif', 0, 'GIF87a'],
  ['image/gif', 0, 'GIF89a'],
  ['image/webp', 8, 'WEBP'],
  ['image/avif', 4, 'ftypavif'],
  ['image/bmp', 0, 'BM'],
]

export function imageTypeOf(bytes: Uint8Array): string | null {
  const found = SIGNATURES.find(([, offset, signature]) =>
    [...signature].every((char, index) => bytes[offset + index] === char.charCodeAt(0)),
  )
  return found?.[0] ?? null
}

export const looksLikeImage = (name: string) => /\.(png|jpe?g|gif|webp|avif|bmp)$/i.test(name)
const looksLikeLog = (name: string) => /\.log(\.\d+)?$/i.test(name)
/** Rather than edited. */
export const isLookedAt = (name: string) => looksLikeImage(name) || looksLikeLog(name)
