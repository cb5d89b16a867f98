// The blob that says how a store is made. It is the first to be written. Once something is stored, only its version changes:
// before the first part is written, or the first patched block listed, so that a program that does not know those refuses the
// store and not its backups.
import { randomBytes } from 'node:crypto'
import { BlobMissing, type BlobStore } from '../../../blobs/store.ts'
import { StartFault } from '../../../kit/start-fault.ts'
import { createMutex, type Mutex } from '../../../kit/waiting/mutex.ts'
import { BLOCK_BYTES, type BlockHash, FORMAT_BLOB, FORMAT_VERSION, isBlockHash, PATCHES_VERSION } from './format.ts'
import { keyCheckOf } from './seal.ts'

export interface StoreFormat {
  version: number
  storeId: string
  blockHash: BlockHash
  keyCheck: string | null
}

/** Undefined where there is no store. Throws where it is one that cannot be read, but for a wrong key. */
export async function readStoreFormat(blobs: BlobStore): Promise<StoreFormat | undefined> {
  let text: string
  try {
    text = Buffer.from(await blobs.get(FORMAT_BLOB)).toString()
  } catch (error) {
    if (error instanceof BlobMissing) return undefined
    throw error
  }
  const { version, storeId, keyCheck, blockBytes, blockHash } = JSON.parse(text)
  if (!Number.isInteger(version) || version < FORMAT_VERSION || version > PATCHES_VERSION)
    throw new Error(`the backup store has format ${version}, not one of ${FORMAT_VERSION} to ${PATCHES_VERSION}`)
  if (blockBytes !== BLOCK_BYTES) throw new Error(`the backup store has blocks of ${blockBytes} bytes`)
  if (!isBlockHash(blockHash)) throw new Error(`the backup store names blocks by ${blockHash}, which is not known`)
  return { version, storeId, blockHash, keyCheck }
}

/** Undefined where `key` is the one the store was made with, or neither has one. */
export function keyProblem({ keyCheck }: StoreFormat, key: Uint8Array | null): string | undefined {
  if (keyCheck === keyCheckOf(key)) return undefined
  if (keyCheck === null) return 'is not encrypted, and a key was given'
  return key ? 'is encrypted with another key' : 'is encrypted: its key is needed'
}

const REMEDIES = {
  needed: 'Set GAMEKEEPER_BACKUP_KEY or GAMEKEEPER_BACKUP_KEY_FILE to the key that it was made with.',
  surplus: 'Start without GAMEKEEPER_BACKUP_KEY: a key can be given only while the store is empty.',
}

/** The format of the store, which is made if there is none. Until something is stored, its key may change. */
export async function agreeOnKey(
  blobs: BlobStore,
  key: Uint8Array | null,
  chooseBlockHash: () => BlockHash,
): Promise<StoreFormat> {
  const format = await readStoreFormat(blobs)
  if (!format) return await writeStoreFormat(blobs, key, chooseBlockHash())
  const problem = keyProblem(format, key)
  if (!problem) return format
  if (await holdsNothing(blobs)) return await writeStoreFormat(blobs, key, format.blockHash)
  const remedy = format.keyCheck === null ? REMEDIES.surplus : REMEDIES.needed
  throw new StartFault(`The store of backups ${problem}. ${remedy}`)
}

export async function holdsNothing(blobs: BlobStore): Promise<boolean> {
  for (const prefix of ['packs/', 'index/', 'parts/', 'manifests/'])
    for await (const _ of blobs.list(prefix)) return false
  return true
}

/** One at a time for each store: two that read the same version would write theirs in any order. */
const raising = new WeakMap<object, Mutex>()

/** Durable once it returns. Before what needs it is there; a store that has it, or a later one, is left as it is. */
export async function raiseVersion(blobs: Pick<BlobStore, 'get' | 'put'>, version: number): Promise<void> {
  const alone = raising.get(blobs) ?? createMutex()
  raising.set(blobs, alone)
  await alone(async () => {
    const format = JSON.parse(Buffer.from(await blobs.get(FORMAT_BLOB)).toString())
    if (format.version >= version) return
    await blobs.put(FORMAT_BLOB, Buffer.from(`${JSON.stringify({ ...format, version })}\n`))
  })
}

async function writeStoreFormat(blobs: BlobStore, key: Uint8Array | null, blockHash: BlockHash): Promise<StoreFormat> {
  const storeId = randomBytes(16).toString('hex')
  const format = { version: FORMAT_VERSION, storeId, blockBytes: BLOCK_BYTES, blockHash, keyCheck: keyCheckOf(key) }
  await blobs.put(FORMAT_BLOB, Buffer.from(`${JSON.stringify(format)}\n`))
  return format
}
