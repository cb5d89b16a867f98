// Takes whole blocks out of a stream of pieces of any size.
import { asBuffer } from '../../../kit/bytes.ts'
import { invalidArchive } from './entry.ts'

export interface TarReader extends AsyncDisposable {
  /** Undefined when the source ends before. */
  take(length: number): Promise<Buffer | undefined>
  stream(left: { bytes: number }): AsyncGenerator<Uint8Array>
}

export function createTarReader(source: AsyncIterable<Uint8Array>): TarReader {
  const iterator = source[Symbol.asyncIterator]()
  let buffered: Buffer = Buffer.alloc(0)

  async function next(): Promise<Buffer | undefined> {
    const { done, value } = await iterator.next()
    return done ? undefined : asBuffer(value)
  }

  /** Put together once, however small the pieces are. */
  async function fill(length: number): Promise<boolean> {
    const pieces = [buffered]
    for (let have = buffered.length; have < length; ) {
      const piece = await next()
      if (!piece) return false
      pieces.push(piece)
      have += piece.length
    }
    buffered = Buffer.concat(pieces)
    return true
  }

  return {
    async take(length) {
      if (buffered.length < length && !(await fill(length))) return undefined
      const taken = buffered.subarray(0, length)
      buffered = buffered.subarray(length)
      return taken
    },
    async *stream(left) {
      while (left.bytes > 0) {
        if (buffered.length === 0) {
          const piece = await next()
          if (!piece) throw invalidArchive('The archive is cut short.')
          buffered = piece
        }
        const part = buffered.subarray(0, Math.min(left.bytes, buffered.length))
        buffered = buffered.subarray(part.length)
        left.bytes -= part.length
        yield part
      }
    },
    async [Symbol.asyncDispose]() {
      await iterator.return?.()
    },
  }
}
