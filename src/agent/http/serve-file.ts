// One file as a response: whole, in part, or 304 if the client already has it.
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { fail } from '../../contract/errors.ts'
import { type Content, streamContent } from '../files/content.ts'
import { untrustedHeaders } from './disposition.ts'
import { isUnchanged, rangeOf, requireVersion, versionHeaders } from './ranges.ts'

/** Closes the file. Resolves when the answer is over. */
export async function serveFile(
  content: Content,
  request: FastifyRequest,
  reply: FastifyReply,
  signal: AbortSignal,
): Promise<FastifyReply> {
  using file = content.file
  const { name, mime, sizeBytes } = content
  requireVersion(request.headers, content)
  reply.headers(versionHeaders(content))
  if (isUnchanged(request.headers, content)) return reply.code(304).send()
  const range = rangeOf(request.headers, content, sizeBytes)
  if (range === 'unsatisfiable')
    throw fail('range_not_satisfiable', {
      detail: `The file has ${sizeBytes} bytes.`,
      headers: { 'content-range': `bytes */${sizeBytes}` },
    })
  const { start, end } = range ?? { start: 0, end: sizeBytes - 1 }
  reply.headers({ ...untrustedHeaders(name), 'content-type': mime, 'content-length': end - start + 1 })
  if (range) reply.code(206).header('content-range', `bytes ${start}-${end}/${sizeBytes}`)
  if (request.method === 'HEAD' || sizeBytes === 0) return reply.send(request.method === 'HEAD' ? undefined : '')
  const stream = streamContent(file, { start, end })
  stream.once('end', () => {
    // The file was cut while it was read. Cutting the answer too tells the client that it does not have all of it.
    if (stream.bytesRead < end - start + 1) reply.raw.destroy()
  })
  return await sendStream(stream, reply, signal)
}

/** Resolves when the answer is over, however it ended; ends it when the signal fires. */
export async function sendStream(stream: Readable, reply: FastifyReply, signal: AbortSignal): Promise<FastifyReply> {
  const stop = () => stream.destroy(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  // What fails ends the answer. One that has not begun, or is over, nobody else listens to, and an error nobody hears ends the process.
  stream.on('error', () => {})
  try {
    signal.throwIfAborted()
    const closed = once(reply.raw, 'close')
    void reply.send(stream)
    await closed
    return reply
  } finally {
    signal.removeEventListener('abort', stop)
    stream.destroy()
  }
}
