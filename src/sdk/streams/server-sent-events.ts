// Server-sent events read from a stream of bytes, as the HTML standard parses them. Not EventSource: that cannot send a
// token in a header.

export interface ServerEvent {
  /** The id of the newest event so far, this one's unless it has none. */
  id: string
  type: string
  data: string
  /** How long the server wants clients to wait before they come back, once it has said so. */
  retryMs: number | null
}

/** What was cut off in the middle is not an event. `onBytes` hears of every sign of life, comments too. */
export async function* readEvents(
  bytes: ReadableStream<Uint8Array>,
  onBytes: () => void = () => {},
): AsyncGenerator<ServerEvent, void, undefined> {
  let id = ''
  let retryMs: number | null = null
  let fields = { type: '', data: [] as string[] }
  for await (const line of linesOf(bytes, onBytes)) {
    if (line === '') {
      if (fields.data.length > 0) yield { id, type: fields.type || 'message', data: fields.data.join('\n'), retryMs }
      fields = { type: '', data: [] }
      continue
    }
    const [, name, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
    if (name === 'data') fields.data.push(value)
    else if (name === 'event') fields.type = value
    else if (name === 'id' && !value.includes('\0')) id = value
    else if (name === 'retry' && /^\d+$/.test(value)) retryMs = Number(value)
  }
}

/** Whole lines only; a line ends with CR, LF or both. */
async function* linesOf(
  bytes: ReadableStream<Uint8Array>,
  onBytes: () => void,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder()
  const reader = bytes.getReader()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      onBytes()
      rest += decoder.decode(value, { stream: true })
      // A CR at the end may be half of a CR LF: it waits for what follows.
      const whole = rest.endsWith('\r') ? rest.slice(0, -1) : rest
      const lines = whole.split(/\r\n|\r|\n/)
      rest = (lines.pop() ?? '') + rest.slice(whole.length)
      yield* lines
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}
