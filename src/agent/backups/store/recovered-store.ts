// A store that outlived its service, on a disk or off-site: inspected without writing to it, and taken over into this
// agent's store blob by blob. Packs that are off-site stay there, and are read from there.
import { existsSync, mkdirSync, realpathSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { copyBlob } from '../../../blobs/copy-blob.ts'
import { asCopy, openLayeredStore, StoreUnreachable } from '../../../blobs/layered.ts'
import { openBlobStore, openWhenUsed } from '../../../blobs/open-store.ts'
import type { BlobInfo, BlobStore } from '../../../blobs/store.ts'
import type { StoredBackup } from '../../../contract/agent/agent-backups.ts'
import { isDiskFull } from '../../../kit/files/errno.ts'
import { forEachAtOnce } from '../../../kit/waiting/work-group.ts'
import { FORMAT_BLOB, manifestBlob } from '../format/format.ts'
import { createSealer, type Sealer } from '../format/seal.ts'
import { holdsNothing, keyProblem, raiseVersion, readStoreFormat, type StoreFormat } from '../format/store-format.ts'
import { listManifests } from './manifests.ts'
import { faultsByIndexes } from './missing-blocks.ts'
import { readOnce } from './read-once.ts'

export type StoreFaultCode =
  | 'no_store'
  | 'unknown_format'
  | 'key_needed'
  | 'wrong_key'
  | 'not_alike'
  | 'disk_full'
  | 'unreachable'
  | 'not_configured'

/** Requests to an off-site store. */
const AT_ONCE = 8

/** What stands against using a store. Seen by whoever is at the command line of this machine, so it may name paths. */
export class StoreFault extends Error {
  readonly code: StoreFaultCode

  constructor(code: StoreFaultCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'StoreFault'
    this.code = code
  }
}

export interface FoundStore {
  /** Where it is, as people write it. */
  place: string
  isOffsite: boolean
  format: StoreFormat
  blobs: BlobStore
  sealer: Sealer
}

/** Writes nothing to `dir`. A data directory will do too: its store is meant. */
export async function findStore(dir: string, key: Uint8Array | null): Promise<FoundStore> {
  const place = [dir, join(dir, 'backups')].find((path) => existsSync(join(path, FORMAT_BLOB)))
  if (place === undefined) throw new StoreFault('no_store', `There is no store of backups in ${dir}.`)
  const blobs = await openBlobStore({ kind: 'local', dir: place }, { clear: false, isReadOnly: true })
  return await inspect({ place, isOffsite: false, blobs }, key)
}

/** Writes nothing there. `place` is what people call it. */
export async function findOffsiteStore(
  open: () => Promise<BlobStore>,
  place: string,
  key: Uint8Array | null,
): Promise<FoundStore> {
  const blobs = readOnce(asCopy(openWhenUsed(open)))
  return await reached(() => inspect({ place, isOffsite: true, blobs }, key))
}

/** Whatever does not answer is a fault of the store, with what is wrong in words. */
export async function reached<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof StoreUnreachable)) throw error
    const { cause } = error
    throw new StoreFault('unreachable', cause instanceof Error ? cause.message : error.message, error)
  }
}

async function inspect(
  found: Pick<FoundStore, 'place' | 'isOffsite' | 'blobs'>,
  key: Uint8Array | null,
): Promise<FoundStore> {
  const { place, blobs } = found
  const format = await readStoreFormat(blobs).catch((error: unknown) => {
    if (error instanceof StoreUnreachable) throw error
    throw new StoreFault('unknown_format', `${place} is not a store that this version can read.`, error)
  })
  if (!format) throw new StoreFault('no_store', `There is no store of backups in ${place}.`)
  const problem = keyProblem(format, key)
  if (problem) throw new StoreFault(key ? 'wrong_key' : 'key_needed', `The store in ${place} ${problem}.`)
  return { ...found, format, sealer: createSealer(key, format.blockHash) }
}

/** Every manifest is read whole and checked. Of packs, only their names and sizes are compared with the indexes. */
export function listStore(store: FoundStore): Promise<StoredBackup[]> {
  const atOnce = store.isOffsite ? AT_ONCE : 1
  return reached(async () => listManifests(store, { findFault: await faultsByIndexes(store, atOnce), atOnce }))
}

export interface Taken {
  blobCount: number
  bytes: number
}

/**
 * Everything of the found store, of which `listed` is what `listStore` told, that the one in `dir` does not have. Blobs
 * are whole or not there, and a manifest follows the packs and parts that it needs: cut short at any point, `dir` is a sound store,
 * and a repetition goes on. Nobody else may write to `dir` meanwhile.
 */
export async function takeOver(
  found: FoundStore,
  listed: StoredBackup[],
  dir: string,
  report: (done: Taken, total: Taken) => void,
): Promise<Taken> {
  const nothing = { blobCount: 0, bytes: 0 }
  if (!found.isOffsite && existsSync(dir) && realpathSync(dir) === realpathSync(found.place)) return nothing
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const own = await openBlobStore({ kind: 'local', dir }, { clear: true })
  const isFresh = await holdsNothing(own)
  await agreeOnFormat(found, own, isFresh)
  if (found.isOffsite) await notePacks(found.blobs, own)
  const missing = await blobsToCopy(found, own, listed, isFresh)
  const total = { blobCount: missing.length, bytes: missing.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) }
  requireRoom(dir, total.bytes)
  const done = { ...nothing }
  const copy = async (blob: BlobInfo) => {
    await copyBlob(found.blobs, own, blob).catch((error: unknown) => {
      if (isDiskFull(error)) throw noRoom(dir, error)
      throw error
    })
    done.blobCount++
    done.bytes += blob.sizeBytes
    report(done, total)
  }
  const isManifest = ({ name }: BlobInfo) => name.startsWith('manifests/')
  for (const group of [missing.filter((blob) => !isManifest(blob)), missing.filter(isManifest)])
    await reached(() => forEachAtOnce(group, found.isOffsite ? AT_ONCE : 1, copy))
  return done
}

/** They stay where they are: a restore reads what it needs of them from there. */
async function notePacks(from: BlobStore, own: BlobStore): Promise<void> {
  const layered = await openLayeredStore(own, from)
  const missing = await reached(() => missingUnder('packs/', from, layered))
  await forEachAtOnce(missing, AT_ONCE, ({ name, sizeBytes }) => layered.note(name, sizeBytes))
}

/** Two stores can be made one where they name and seal blocks alike: by one hash, both in the clear or under one key. */
async function agreeOnFormat(found: FoundStore, own: BlobStore, isFresh: boolean): Promise<void> {
  const format = await readStoreFormat(own)
  const isAlike = format?.keyCheck === found.format.keyCheck && format.blockHash === found.format.blockHash
  if (isAlike) {
    await raiseVersion(own, found.format.version)
    return
  }
  if (!isFresh)
    throw new StoreFault(
      'not_alike',
      'The data directory has backups of its own, with another key or another hash. Recover into an empty data directory.',
    )
  await own.put(FORMAT_BLOB, await reached(() => found.blobs.get(FORMAT_BLOB)))
}

/**
 * Manifests come last, and only those that were listed: one that has appeared since might lack its packs. One that says
 * nothing about its backup would only stand in the way of every reclaim.
 */
async function blobsToCopy(
  { blobs: from, isOffsite }: FoundStore,
  own: BlobStore,
  listed: StoredBackup[],
  isFresh: boolean,
): Promise<BlobInfo[]> {
  const sound = new Set<string>()
  for (const { serverId, backupId, backup } of listed) if (backup) sound.add(manifestBlob(serverId, backupId))
  const missing: BlobInfo[] = []
  const first = isOffsite ? [] : [...(isFresh ? ['state/damage'] : []), 'packs/', 'away/']
  for (const prefix of [...first, 'index/', 'locks/', 'parts/', 'manifests/'])
    missing.push(...(await reached(() => missingUnder(prefix, from, own))))
  return missing.filter(({ name }) => !name.startsWith('manifests/') || sound.has(name))
}

async function missingUnder(prefix: string, from: BlobStore, own: BlobStore): Promise<BlobInfo[]> {
  const there = new Set<string>()
  for await (const { name } of own.list(prefix)) there.add(name)
  const missing: BlobInfo[] = []
  for await (const blob of from.list(prefix)) if (!there.has(blob.name)) missing.push(blob)
  return missing
}

function requireRoom(dir: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(dir)
  if (bavail * bsize < bytes) throw noRoom(dir)
}

const noRoom = (dir: string, cause?: unknown) =>
  new StoreFault('disk_full', `The disk of ${dir} has no room for the backups.`, cause)
