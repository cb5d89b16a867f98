// Writes a backup's new blocks: pack after pack, full ones made durable while the next is filled. Until the backup is
// done, only it knows these blocks, so nothing else can rely on blocks that are deleted if it fails.
import { createWorkGroup } from '../../../kit/waiting/work-group.ts'
import { createBlockIndex } from '../blocks/block-index.ts'
import { packBlob } from '../format/format.ts'
import { decodeTable, tableOf, visitTable } from '../format/pack-table.ts'
import { createIndexWriter } from '../store/index-blobs.ts'
import { createPack, type PackWriter } from '../store/packs.ts'
import type { Repository } from '../store/repository.ts'

/** Packs that are being made durable at one time. With all of them under way, nothing is added to the next. */
const FINISHING_AT_ONCE = 3

export interface PackSink {
  /**
   * `table` lists what `bytes` hold, and `spans` its spans: of the frames, those with something new are kept. Resolves when the
   * bytes may change.
   */
  add(bytes: Uint8Array, table: Uint8Array, spans: Uint8Array): Promise<void>
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
  const finishing = createWorkGroup(FINISHING_AT_ONCE)
  let current: PackWriter | undefined
  let opening: Promise<PackWriter> | undefined
  let storedBytes = 0

  const holds = (id: Uint8Array, at = 0) => repository.index.find(id, at) >= 0 || own.find(id, at) >= 0

  async function writer(): Promise<PackWriter> {
    finishing.check()
    if (current) return current
    opening ??= createPack(repository.blobs, repository.spanKey).then((pack) => {
      current = pack
      opening = undefined
      return pack
    })
    return await opening
  }

  function close(pack: PackWriter): void {
    current = undefined
    finishing.start(finishPack(pack))
  }

  async function finishPack(pack: PackWriter): Promise<void> {
    try {
      const written = await pack.finish()
      finished.set(written.packId, written.sizeBytes)
      storedBytes += written.sizeBytes
      own.notePack(written.packId, written.table)
      await indexes.add(written)
    } catch (error) {
      await pack.abort().catch(() => {})
      throw error
    }
  }

  /** Of each frame, whether something in it is new. */
  function newFrames(table: Uint8Array): boolean[] {
    const areNew: boolean[] = []
    visitTable(table, {
      frame: () => void areNew.push(false),
      block: (idAt) => {
        if (!holds(table, idAt)) areNew[areNew.length - 1] = true
      },
    })
    return areNew
  }

  async function append(bytes: Uint8Array, table: Uint8Array, spans?: Uint8Array): Promise<void> {
    let pack = await writer()
    // Others that waited for it as well may have filled it meanwhile.
    while (pack !== current) pack = await writer()
    own.addTable(pack.packId, table, pack.append(bytes, table, spans))
    visitTable(table, { frame() {}, block: (idAt) => repository.index.hint(table, idAt) })
    const settled = pack.settled()
    if (pack.isFull) close(pack)
    if (finishing.isFull()) await finishing.room()
    await settled
    finishing.check()
  }

  return {
    holds,
    get storedBytes() {
      return storedBytes
    },
    async add(bytes, table, spans) {
      const areNew = newFrames(table)
      if (!areNew.includes(true)) return
      if (!areNew.includes(false)) return await append(bytes, table, spans)
      for (const [index, frame] of decodeTable(table).entries())
        if (areNew[index]) await append(bytes.subarray(frame.offset, frame.offset + frame.storedLength), tableOf(frame))
    },
    async finish() {
      if (current) close(current)
      await finishing.drain()
      await indexes.finish()
    },
    publish: () => repository.publish(finished, own),
    async abort(givesBack) {
      await opening?.catch(() => {})
      const pack = current
      current = undefined
      await pack?.abort().catch(() => {})
      await finishing.ended()
      if (!givesBack) return
      // What cannot be deleted now is given back by a reclaim.
      for (const name of [...indexes.names, ...[...finished.keys()].map(packBlob)])
        await repository.blobs.delete(name).catch(() => {})
    },
  }
}
