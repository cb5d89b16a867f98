// What the tests of manifests share: manifests of made-up trees, one after another, in a store of their own.
import { hash } from 'node:crypto'
import { openLocalStore } from '../../../blobs/local.ts'
import { type Entry, orderKey, type StoredEntry } from './entries.ts'
import { type Manifest, type ManifestMeta, openManifest } from './manifest.ts'
import { createManifest, type ManifestSizes } from './manifest-writer.ts'
import { createSealer } from './seal.ts'
import { agreeOnKey } from './store-format.ts'

export const SERVER = 'srv_a'

/** A file of one block, which is another for each path and version. */
function entryAt(path: string, version: number): Entry {
  const content = Buffer.concat([Buffer.of(2), hash('sha256', `${path} ${version}`, 'buffer')])
  const [mtimeNs, ctimeNs, inode] = [BigInt(version), 3n, 4n]
  const owner = { mode: 0o644, uid: 1, gid: 2 }
  const more = { isSettled: true, target: null, hardLink: null, content }
  return { path, kind: 'file', ...owner, mtimeNs, ctimeNs, inode, sizeBytes: 5, ...more }
}

export const named = (number: number) => `/${String(number).padStart(6, '0')} ${'long name '.repeat(8)}`

/** In order, each with its version. */
export function sorted(tree: ReadonlyMap<string, number>): [string, number][] {
  const keyed = [...tree].map((entry) => ({ key: orderKey(entry[0]), entry }))
  return keyed.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ entry }) => entry)
}

export async function treeOf(manifest: Manifest): Promise<[string, number][]> {
  const entries = await Array.fromAsync(manifest.entries())
  return entries.map(({ path, mtimeNs }) => [path, Number(mtimeNs)])
}

/** One backup after another of entries by path and version. */
export async function createBackups(folder: string, key: Buffer | null, sizes?: ManifestSizes) {
  const blobs = await openLocalStore(folder, { clear: true })
  await agreeOnKey(blobs, key, () => 'sha-256')
  const sealer = createSealer(key, 'sha-256')
  let count = 0

  const open = (backupId: string) => openManifest(blobs, sealer, { serverId: SERVER, backupId })

  async function backUp(
    tree: ReadonlyMap<string, number>,
    previous?: Manifest,
    cut = sizes,
  ): Promise<{ manifest: Manifest; taken: number }> {
    const backupId = `bkp_${count++}`
    const known = new Map<string, StoredEntry>()
    const before = new Set<string>()
    const writer = createManifest(blobs, sealer, { serverId: SERVER, backupId }, previous, cut)
    for (const [index, place] of previous?.places.entries() ?? []) {
      const entries = await previous?.chunkAt(index).catch(() => undefined)
      if (!entries) writer.replace(place)
      for (const entry of entries ?? []) known.set(entry.path, entry)
      before.add(nameOf(place))
    }
    for (const [path, version] of sorted(tree)) {
      const kept = known.get(path)
      await (kept?.mtimeNs === BigInt(version) ? writer.addAsItStands(kept) : writer.add(entryAt(path, version)))
    }
    await writer.finish({ serverId: SERVER, backupId } as ManifestMeta)
    const manifest = await open(backupId)
    const chunks = manifest.places.map(nameOf)
    return { manifest, taken: chunks.filter((name) => before.has(name)).length / chunks.length }
  }

  return { blobs, sealer, backUp, open }
}

const nameOf = ({ id, digest, first, entryCount }: Manifest['places'][number]) =>
  `${id ?? digest} ${first} ${entryCount}`
