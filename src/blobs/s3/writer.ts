// A blob of unknown length on its way into a bucket: small ones in one request, larger ones in parts while they are written.
import { crc32 } from 'node:zlib'
import { asBuffer } from '../../kit/bytes.ts'
import { createWorkGroup } from '../../kit/waiting/work-group.ts'
import { BlobExists, type BlobWriter } from '../store.ts'
import { formatCrc, memorySource } from './bodies.ts'
import { beginMultipart, type Multipart } from './multiparts.ts'
import type { Requests } from './requests.ts'
import { compare, isThere, upload } from './uploads.ts'

/** The smallest that S3 takes is 5 MiB. With 10,000 of them a blob has at most 80 GiB. */
const PART_BYTES = 8 * 1024 * 1024
const PARTS_AT_ONCE = 2

export function createWriter(requests: Requests, name: string): BlobWriter {
  const sending = createWorkGroup(PARTS_AT_ONCE)
  let waiting: Buffer[] = []
  let waitingBytes = 0
  let multipart: Multipart | undefined
  let parts = 0
  let sizeBytes = 0
  let crc = 0
  let isEnded = false

  async function sendPart(length: number): Promise<void> {
    const [only] = waiting
    const all = only && waiting.length === 1 ? only : Buffer.concat(waiting)
    waiting = length < all.length ? [all.subarray(length)] : []
    waitingBytes = all.length - length
    multipart ??= await beginMultipart(requests, name)
    await sending.room()
    sending.check()
    sending.start(multipart.add(++parts, memorySource(all.subarray(0, length)), {}))
  }

  async function finish(): Promise<void> {
    if (!multipart) return await upload(requests, name, memorySource(Buffer.concat(waiting)))
    if (waitingBytes > 0) await sendPart(waitingBytes)
    await sending.drain()
    const isConditional = requests.address.traits.conditionalMultipart
    const isTaken = !isConditional && (await isThere(requests, name))
    if (!isTaken && (await multipart.complete({ isConditional })) === 'placed') return
    const expected = { sizeBytes, crc: async () => formatCrc(crc) }
    const found = await compare(requests, name, expected)
    await multipart.abort()
    if (found !== 'same') throw new BlobExists(name)
  }

  async function abort(): Promise<void> {
    if (isEnded) return
    isEnded = true
    waiting = []
    await sending.ended()
    await multipart?.abort()
  }

  return {
    async write(bytes) {
      sending.check()
      // Not `Buffer.from`, which takes shared memory byte by byte.
      const copy = Buffer.allocUnsafeSlow(bytes.length)
      asBuffer(bytes).copy(copy)
      crc = crc32(copy, crc)
      sizeBytes += copy.length
      waiting.push(copy)
      waitingBytes += copy.length
      while (waitingBytes >= PART_BYTES) await sendPart(PART_BYTES)
    },
    async commit() {
      try {
        await finish()
        isEnded = true
      } catch (error) {
        await abort()
        throw error
      }
    },
    abort,
  }
}
