// A child of the uploads benchmark: sends one body or several at once and says how long it took. The same bytes are sent
// again and again, so that making them costs nothing.
import { randomFillSync } from 'node:crypto'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'

export interface Sending {
  method: string
  url: string
  headers: OutgoingHttpHeaders
  before: string
  after: string
  bytes: number
}

const block = randomFillSync(Buffer.alloc(1024 * 1024))

process.on('message', (sendings: Sending[]) => {
  const began = performance.now()
  Promise.all(sendings.map(send)).then(
    () => process.send?.({ ms: performance.now() - began }),
    (error) => process.send?.({ error: String(error) }),
  )
})

async function send({ method, url, headers, before, after, bytes }: Sending): Promise<void> {
  const request = httpRequest(url, {
    method,
    headers: { ...headers, 'content-length': bytes + Buffer.byteLength(before) + Buffer.byteLength(after) },
    agent: false,
  })
  const answered = once(request, 'response') as Promise<[IncomingMessage]>
  if (before) request.write(before)
  for (let left = bytes; left > 0; left -= block.length)
    if (!request.write(left < block.length ? block.subarray(0, left) : block)) await once(request, 'drain')
  request.end(after)
  const [response] = await answered
  const text = (await response.toArray()).join('')
  if (response.statusCode === undefined || response.statusCode >= 300) throw new Error(`${response.statusCode} ${text}`)
}
