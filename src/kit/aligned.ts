/**
 * Memory for writes that go around the page cache. An ArrayBuffer whose size may change is mapped for itself, so it begins
 * at a page; any other begins wherever there is room.
 */
export function alignedBuffer(bytes: number): Buffer {
  return Buffer.from(new ArrayBuffer(bytes, { maxByteLength: bytes }))
}
