// The bytes of a file as a stream, as `createReadStream` makes it, but with one owner of the descriptor.
import { Readable } from 'node:stream'
import type { Descriptor } from '../../../kit/files/descriptor.ts'

const READ_BYTES = 256 * 1024

export class FileStream extends Readable {
  bytesRead = 0
  readonly #file: Descriptor
  readonly #end: number
  #position: number

  /** Takes the file over, and closes it when it is over, however it ends. Both ends of the range are included. */
  constructor(file: Descriptor, range: { start: number; end: number } = { start: 0, end: Number.POSITIVE_INFINITY }) {
    super({ highWaterMark: READ_BYTES })
    this.#file = file
    this.#position = range.start
    this.#end = range.end
  }

  override _read(size: number): void {
    const length = Math.min(size, this.#end - this.#position + 1)
    if (length <= 0) {
      this.push(null)
      return
    }
    const buffer = Buffer.allocUnsafeSlow(length)
    this.#file.read(buffer, 0, length, this.#position).then(
      (bytes) => {
        if (this.destroyed) return
        this.#position += bytes
        this.bytesRead += bytes
        this.push(bytes === 0 ? null : bytes === length ? buffer : Buffer.from(buffer.subarray(0, bytes)))
      },
      (error) => this.destroy(error),
    )
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#file[Symbol.dispose]()
    done(error)
  }
}
