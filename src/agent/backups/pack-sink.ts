// Where a backup's new blocks go: pack after pack, the full ones made durable while the next is filled. Until the backup
// is done, only it knows of them: so nothing else can count on blocks that go when it fails.
import { hasCode } from '../../kit/errno.ts'
import { createBlockIndex } from './block-index.ts'
import { packBlob } from './format.ts'
import { createIndexWriter } from './index-blobs.ts'
import { createPack, type PackWriter, type UnplacedFrame } from './packs.ts'
import type { Repository } from './repository.ts'

/** Packs that are being made durable at one time. */
const FINISHING_AT_MOST = 2

export interface PackSink {
  /** Frames that follow each other in `bytes`, of which only those with something new are kept. Resolves when the bytes may change. */
  add(bytes: Uint8Array, frames: UnplacedFrame[]): Promise<void>
  /** In the store, or stored by this backup. */
  holds(id: Uint8Array, at?: number): boolean
  readonly storedBytes: number
  /** Once it returns, everything added is durable. Nobody else counts on it yet. */
  finish(): Promise<void>
  /** The backup is done: what it added stays, and every other backup may count on it. */
  publish(): Promise<void>
  /** Lets go of everything and, where `givesBack`, deletes what was written. Not after `publish`. */
  abort(givesBack: boolean): Promise<void>
}

export function createPackSink(repository: Repository): PackSink {
  const own = createBlockIndex()
  const indexes = createIndexWriter(repository.blobs, repository.sealer)
  /** The packs that are durable, with their sizes. */
  const finished = new Map<string, number>()
  const finishing = new Set<Promise<void>>()
  let current: PackWriter | undefined
  let opening: Promise<PackWriter> | undefined
  let storedBytes = 0
  let failure: unknown

  const holds = (id: Uint8Array, at = 0) => repository.index.find(id, at) >= 0 || own.find(id, at) >= 0

  async function writer(): Promise<PackWriter> {
    if (failure !== undefined) throw failure
    if (current) return current
    opening ??= createPack(repository.blobs).then((pack) => {
      current = pack
      opening = undefined
      return pack
    })
    return await opening
  }

  function close(pack: PackWriter): void {
    current = undefined
    const done = pack
      .finish()
      .then(async (written) => {
        finished.set(written.packId, written.sizeBytes)
        storedBytes += written.sizeBytes
        await indexes.add(written)
      })
      .catch(async (error) => {
        failure ??= error
        await pack.abort().catch(() => {})
      })
      .finally(() => finishing.delete(done))
    finishing.add(done)
  }

  async function append(bytes: Uint8Array, frames: UnplacedFrame[]): Promise<void> {
    let pack = await writer()
    // Others that waited for it as well may have filled it meanwhile.
    while (pack !== current) pack = await writer()
    for (const frame of pack.append(bytes, frames)) {
      own.addFrame(pack.packId, frame)
      for (const { id } of frame.blocks) repository.index.hint(id)
    }
    const settled = pack.settled()
    if (pack.isFull) close(pack)
    while (finishing.size > FINISHING_AT_MOST) await Promise.race(finishing)
    await settled
    if (failure !== undefined) throw failure
  }

  return {
    holds,
    get storedBytes() {
      return storedBytes
    },
    async add(bytes, frames) {
      const isNew = (frame: UnplacedFrame) => frame.blocks.some(({ id }) => !holds(id))
      if (frames.length > 0 && frames.every(isNew)) return await append(bytes, frames)
      let at = 0
      for (const frame of frames) {
        if (isNew(frame)) await append(bytes.subarray(at, at + frame.storedLength), [frame])
        at += frame.storedLength
      }
    },
    async finish() {
      if (current) close(current)
      await Promise.all(finishing)
      if (failure !== undefined) throw failure
      await indexes.finish()
    },
    publish: () => repository.publish(finished, own),
    async abort(givesBack) {
      await opening?.catch(() => {})
      const pack = current
      current = undefined
      await pack?.abort().catch(() => {})
      await Promise.all(finishing)
      if (!givesBack) return
      // What cannot be deleted now is given back by a reclaim.
      for (const name of [...indexes.names, ...[...finished.keys()].map(packBlob)])
        await repository.blobs.delete(name).catch(() => {})
    },
  }
}

export function isDiskFull(error: unknown): boolean {
  return hasCode(error, 'ENOSPC', 'EDQUOT') || (error instanceof Error && isDiskFull(error.cause))
}
