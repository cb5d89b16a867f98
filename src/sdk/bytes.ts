import { TransportError } from './errors.ts'

/** The bytes of an answer. A connection that breaks in the middle is an error of ours, never a short file. */
export function bytesOf(response: Response): ReadableStream<Uint8Array<ArrayBuffer>> {
  if (!response.body) throw new TransportError('foreign_answer', 'The answer has no body.', { status: response.status })
  const reader = response.body.getReader()
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      } catch (error) {
        const aborted = error instanceof Error && error.name === 'AbortError'
        controller.error(aborted ? error : new TransportError('network', 'The answer broke off.', { cause: error }))
      }
    },
    cancel: (reason) => reader.cancel(reason),
  })
}
