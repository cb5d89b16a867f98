// A store found on a disk that outlived its service: inspected without writing to it, and imported into this agent's
// store blob by blob.
import { existsSync, mkdirSync, realpathSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { copyBlob } from '../../../blobs/copy-blob.ts'
import { openBlobStore } from '../../../blobs/open-store.ts'
import type { BlobInfo, BlobStore } from '../../../blobs/store.ts'
import type { StoredBackup } from '../../../contract/agent/agent-backups.ts'
import { isDiskFull } from '../../../kit/errno.ts'
import { FORMAT_BLOB, manifestBlob } from '../format/format.ts'
import { createSealer, type Sealer } from '../format/seal.ts'
import { holdsNothing, keyProblem, readStoreFormat, type StoreFormat } from '../format/store-format.ts'
import { listManifests } from './manifests.ts'

export type StoreFaultCode = 'no_store' | 'unknown_format' | 'key_needed' | 'wrong_key' | 'not_alike' | 'disk_full'

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
  dir: string
  format: StoreFormat
  blobs: BlobStore
  sealer: Sealer
}

/** Writes nothing to `dir`. A data directory will do too: its store is meant. */
export async function findStore(dir: string, key: Uint8Array | null): Promise<FoundStore> {
  const place = [dir, join(dir, 'backups')].find((path) => existsSync(join(path, FORMAT_BLOB)))
  if (place === undefined) throw new StoreFault('no_store', `There is no store of backups in ${dir}.`)
  const blobs = await openBlobStore({ kind: 'local', dir: place }, { clear: false, isReadOnly: true })
  const format = await readStoreFormat(blobs).catch((error: unknown) => {
    throw new StoreFault('unknown_format', `${place} is not a store that this version can read.`, error)
  })
  if (!format) throw new StoreFault('no_store', `There is no store of backups in ${dir}.`)
  const problem = keyProblem(format, key)
  if (problem) throw new StoreFault(key ? 'wrong_key' : 'key_needed', `The store in ${place} ${problem}.`)
  return { dir: place, format, blobs, sealer: createSealer(key, format.blockHash) }
}

/** Every manifest is read whole and checked; blocks are not. */
export function listStore(store: FoundStore): Promise<StoredBackup[]> {
  return listManifests(store, { isThorough: true })
}

export interface Taken {
  blobCount: number
  bytes: number
}

/**
 * Everything of the found store, of which `listed` is what `listStore` told, that the one in `dir` does not have. Blobs
 * are whole or not there, and a manifest follows the packs that it needs: cut short at any point, `dir` is a sound store,
 * and a repetition goes on. Nobody else may write to `dir` meanwhile.
 */
export async function takeOver(
  found: FoundStore,
  listed: StoredBackup[],
  dir: string,
  report: (done: Taken, total: Taken) => void,
): Promise<Taken> {
  const nothing = { blobCount: 0, bytes: 0 }
  if (existsSync(dir) && realpathSync(dir) === realpathSync(found.dir)) return nothing
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const own = await openBlobStore({ kind: 'local', dir }, { clear: true })
  const isFresh = await holdsNothing(own)
  await agreeOnFormat(found, own, isFresh)
  const missing = await blobsToCopy(found.blobs, own, listed, isFresh)
  const total = { blobCount: missing.length, bytes: missing.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) }
  requireRoom(dir, total.bytes)
  const done = { ...nothing }
  for (const blob of missing) {
    await copyBlob(found.blobs, own, blob).catch((error: unknown) => {
      if (isDiskFull(error)) throw noRoom(dir, error)
      throw error
    })
    done.blobCount++
    done.bytes += blob.sizeBytes
    report(done, total)
  }
  return done
}

/** Two stores can be made one where they name and seal blocks alike: by one hash, both in the clear or under one key. */
async function agreeOnFormat(found: FoundStore, own: BlobStore, isFresh: boolean): Promise<void> {
  const format = await readStoreFormat(own)
  const isAlike = format?.keyCheck === found.format.keyCheck && format.blockHash === found.format.blockHash
  if (isAlike) return
  if (!isFresh)
    throw new StoreFault(
      'not_alike',
      'The data directory has backups of its own, with another key or another hash. Recover into an empty data directory.',
    )
  await own.put(FORMAT_BLOB, await found.blobs.get(FORMAT_BLOB))
}

/**
 * Manifests come last, and only those that were listed: one that has appeared since might lack its packs. One that says
 * nothing about its backup would only stand in the way of every reclaim.
 */
async function blobsToCopy(
  from: BlobStore,
  own: BlobStore,
  listed: StoredBackup[],
  isFresh: boolean,
): Promise<BlobInfo[]> {
  const sound = new Set<string>()
  for (const { serverId, backupId, backup } of listed) if (backup) sound.add(manifestBlob(serverId, backupId))
  const missing: BlobInfo[] = []
  for (const prefix of [...(isFresh ? ['state/damage'] : []), 'packs/', 'index/', 'locks/', 'manifests/'])
    missing.push(...(await missingUnder(prefix, from, own)))
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
