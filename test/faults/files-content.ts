// Files whose content says what it should be: half a file shows, and a file that is gone is known by its label.
export function contentOf(label: string, size: number): Buffer<ArrayBuffer> {
  const head = `${label}:${size}:`
  return Buffer.from(`${head}${label.repeat(Math.ceil(size / label.length)).slice(0, size)}:end`)
}

/** Null when it is not whole. */
export function labelOf(content: Buffer): string | null {
  const [, label = '', size = ''] = /^([\w-]+):(\d+):/.exec(content.subarray(0, 100).toString('latin1')) ?? []
  return label !== '' && content.equals(contentOf(label, Number(size))) ? label : null
}
