// A table of numbers in rows of fixed width. It grows by chunks, so that growing never copies. A class for the same reason
// as the index that is made of it.

const CHUNK_BITS = 14
const CHUNK = 1 << CHUNK_BITS

export class Rows<A extends Uint8Array | Uint32Array> {
  private readonly chunks: A[] = []
  private readonly make: new (
    length: number,
  ) => A
  private readonly width: number

  constructor(make: new (length: number) => A, width: number) {
    this.make = make
    this.width = width
  }

  chunkOf(row: number): A {
    const index = row >> CHUNK_BITS
    const chunk = this.chunks[index]
    if (chunk) return chunk
    const made = new this.make(CHUNK * this.width)
    this.chunks[index] = made
    return made
  }

  baseOf(row: number): number {
    return (row & (CHUNK - 1)) * this.width
  }

  get(row: number, column: number): number {
    return this.chunkOf(row)[this.baseOf(row) + column] ?? 0
  }
}
