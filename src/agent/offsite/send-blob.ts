// One blob from the store to the mirror, at the rate that is allowed.
import { setImmediate as turn } from 'node:timers/promises'
import { copyBlob } from '../../blobs/copy-blob.ts'
import { BlobMissing, type BlobStore } from '../../blobs/store.ts'
import type { createRateLimit } from '../../kit/waiting/rate-limit.ts'
import type { Blob } from './mirror-plan.ts'

export interface Wire {
  local: Pick<BlobStore, 'get' | 'open'>
  mirror: BlobStore
  rate: ReturnType<typeof createRateLimit>
  signal: AbortSignal
  onSent: (bytes: number) => void
}

/** What was sent; undefined where the store no longer has it. `isReplaced`: what the mirror has of it is not whole. */
export async function sendBlob(wire: Wire, blob: Blob, isReplaced: boolean): Promise<Blob | undefined> {
  // Others have a turn between any two blobs.
  await turn()
  try {
    return await (blob.name.startsWith('locks/') ? sendMark(wire, blob) : sendWhole(wire, blob, isReplaced))
  } catch (error) {
    if (error instanceof BlobMissing) return undefined
    throw error
  }
}

/** It may have changed since it was listed. */
async function sendMark({ local, mirror, onSent }: Wire, { name }: Blob): Promise<Blob> {
  const bytes = await local.get(name)
  await mirror.put(name, bytes)
  onSent(bytes.length)
  return { name, sizeBytes: bytes.length }
}

async function sendWhole(wire: Wire, blob: Blob, isReplaced: boolean): Promise<Blob> {
  const { local, mirror, rate, signal, onSent } = wire
  let left = blob.sizeBytes
  const pace = async (bytes: number) => {
    await rate.take(bytes, signal)
    // What has to be sent once more is no progress.
    const counted = Math.min(bytes, left)
    left -= counted
    onSent(counted)
  }
  await copyBlob(local, mirror, blob, { replace: isReplaced, pace, signal })
  onSent(left)
  return blob
}
