// The events of a connection that may die without a word.
import { TransportError } from '../errors.ts'
import { readEvents, type ServerEvent } from './server-sent-events.ts'

/** A connection that is silent for longer is taken for dead. The service shows a sign of life every 15 seconds. */
const SILENCE_MS = 45_000

export async function openEvents(
  open: (signal: AbortSignal) => Promise<Response>,
  signal: AbortSignal | undefined,
  silenceMs = SILENCE_MS,
): Promise<AsyncIterable<ServerEvent>> {
  const silent = new AbortController()
  const response = await open(signal ? AbortSignal.any([signal, silent.signal]) : silent.signal)
  if (!response.body) throw new TransportError('foreign_answer', 'The answer has no body.')
  return whileAlive(response.body, silenceMs, () => {
    silent.abort(new TransportError('timeout', 'The connection has fallen silent.'))
  })
}

async function* whileAlive(body: ReadableStream<Uint8Array>, silenceMs: number, onSilence: () => void) {
  let timer = setTimeout(onSilence, silenceMs)
  const restart = () => {
    clearTimeout(timer)
    timer = setTimeout(onSilence, silenceMs)
  }
  try {
    yield* readEvents(body, restart)
  } finally {
    clearTimeout(timer)
  }
}
