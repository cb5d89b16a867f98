// A reader of server-sent events, for tests that follow a stream.
export interface SentEvent {
  id: string
  event: string
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting on it
  data: any
}

export interface EventStream {
  status: number
  headers: Headers
  /** The next event, or undefined once the stream has ended. */
  next(): Promise<SentEvent | undefined>
  close(): void
}

export async function openEvents(
  url: string,
  /** null sends none. */
  token: string | null,
  headers: Record<string, string> = {},
): Promise<EventStream> {
  const abort = new AbortController()
  const response = await fetch(url, {
    headers: {
      accept: 'text/event-stream',
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    },
    signal: abort.signal,
  })
  const events = parse(response)
  return {
    status: response.status,
    headers: response.headers,
    next: async () => (await events.next()).value as SentEvent | undefined,
    close: () => abort.abort(),
  }
}

async function* parse(response: Response): AsyncGenerator<SentEvent> {
  if (!response.body) return
  let text = ''
  const decoder = new TextDecoder()
  try {
    for await (const chunk of response.body) {
      text += decoder.decode(chunk, { stream: true })
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) {
        const event = parseBlock(block)
        if (event) yield event
      }
    }
  } catch (error) {
    if ((error as Error).name !== 'AbortError') throw error
  }
}

function parseBlock(block: string): SentEvent | undefined {
  const fields = new Map(block.split('\n').map((line) => line.split(/: (.*)/s) as [string, string]))
  const data = fields.get('data')
  return data === undefined
    ? undefined
    : { id: fields.get('id') ?? '', event: fields.get('event') ?? '', data: JSON.parse(data) }
}
