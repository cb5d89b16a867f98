/** One after another, in memory of their own and of just that size: a message carries the whole of what a view is of. */
export function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}

/** The same bytes with a Buffer's methods; nothing is copied. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

/** Now, and not when the collector comes to it. Whatever else lies in it is gone too. What threads share stays. */
export function freeMemory(memory: ArrayBufferLike): void {
  if (memory instanceof ArrayBuffer) memory.transfer(0)
}
