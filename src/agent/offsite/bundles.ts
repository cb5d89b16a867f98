// Small blobs of the mirror, many of them in one more: a new machine that reads them all makes one request in place of
// hundreds. Nothing depends on a bundle, so what fails here fails no run.
import { randomBytes } from 'node:crypto'
import { isLost } from '../../blobs/store.ts'
import { BUNDLE_HEAD_BYTES, type BundledBlob, encodeBundle, namesInBundle } from '../backups/format/bundle.ts'
import { bundleBlob, Damage } from '../backups/format/format.ts'
import { inMemory, readSound } from '../backups/store/sound-blobs.ts'
import { type Blobs, folderOf } from './mirror-plan.ts'
import type { Mirror } from './mirror-run.ts'
import { sendBlob, type Wire } from './send-blob.ts'

const FOLDERS: readonly string[] = ['index', 'parts', 'manifests']
/** A larger one is worth a request of its own. */
const SMALL_BYTES = 256 * 1024
const BUNDLE_BYTES = 4 * 1024 * 1024
const BUNDLE_BLOBS = 256
/** That many wait for a bundle at least; of one that has many already, this share of them: it is sent anew as a whole. */
const WAITING = 4
const WAITING_SHARE = 1 / 8

export interface Bundles {
  /** By name, as the mirror lists them. */
  there: Blobs
  /** What is in each, as far as that is known. */
  contents: Map<string, string[]>
}

/** Of those that are listed now, what is known of them by their name and size. */
export function listedBundles(there: Blobs, known: Bundles | undefined): Bundles {
  const isKnown = ([name]: [string, string[]]) => there.has(name) && there.get(name) === known?.there.get(name)
  return { there, contents: new Map([...(known?.contents ?? [])].filter(isKnown)) }
}

type Bundling = Pick<Mirror, 'repository' | 'mirror' | 'inventory' | 'bundles' | 'ownership' | 'isAppendOnly'>

/** What a run has sent comes into bundles once it is enough. */
export async function bundleSmall(place: Bundling, wire: Wire, sent: ReadonlySet<string>): Promise<void> {
  if (![...sent].some((name) => FOLDERS.includes(folderOf(name)))) return
  try {
    await learnContents(place)
    await dissolve(place)
    while (await extendBundle(place, wire));
  } catch {
    // The next run goes on.
    wire.signal.throwIfAborted()
  }
}

async function learnContents({ mirror, bundles: { there, contents } }: Bundling): Promise<void> {
  for (const [name, sizeBytes] of there) {
    if (contents.has(name)) continue
    try {
      const head = await mirror.get(name, { offset: 0, length: Math.min(sizeBytes, BUNDLE_HEAD_BYTES) })
      contents.set(name, namesInBundle(name, head))
    } catch (error) {
      if (!(error instanceof Damage) && !isLost(error)) throw error
      contents.set(name, [])
    }
  }
}

/** What is left in those of which most is gone by now comes into others. */
async function dissolve({ mirror, inventory, bundles, ownership, isAppendOnly }: Bundling): Promise<void> {
  if (isAppendOnly) return
  const isWaste = ([, names]: [string, string[]]) =>
    names.filter((name) => inventory.has(name)).length * 2 < Math.max(1, names.length)
  const wasted = [...bundles.contents].filter(isWaste)
  if (wasted.length === 0) return
  await ownership.require()
  for (const [name] of wasted) {
    await mirror.delete(name)
    bundles.there.delete(name)
    bundles.contents.delete(name)
  }
}

/** Answers whether there is more to do. */
async function extendBundle({ repository, inventory, bundles }: Bundling, wire: Wire): Promise<boolean> {
  const { there, contents } = bundles
  const bundled = new Set([...contents.values()].flat())
  const isSmall = ([name, sizeBytes]: [string, number]) =>
    sizeBytes <= SMALL_BYTES && FOLDERS.includes(folderOf(name)) && !bundled.has(name)
  const waiting = [...inventory].filter(isSmall).map(([name]) => name)
  const isOpen = ([name, names]: [string, string[]]) =>
    names.length > 0 && names.length < BUNDLE_BLOBS && (there.get(name) ?? 0) < BUNDLE_BYTES
  const [bundle, before] = [...contents].find(isOpen) ?? [bundleBlob(randomBytes(16).toString('hex')), []]
  if (waiting.length < Math.max(WAITING, before.length * WAITING_SHARE)) return false
  const live = before.filter((name) => inventory.has(name))
  const blobs = await readAll(repository, [...live, ...waiting], wire.signal)
  // What waits is not sound here.
  if (blobs.length <= live.length) return false
  const bytes = encodeBundle(blobs)
  const blob = { name: bundle, sizeBytes: bytes.length }
  await sendBlob({ ...wire, local: inMemory(bytes), onSent: () => {} }, blob, true)
  there.set(bundle, bytes.length)
  contents.set(
    bundle,
    blobs.map(({ name }) => name),
  )
  return true
}

/** As many of them as one bundle takes, checked to the last byte: whoever reads a bundle does not ask for the blob itself. */
async function readAll(repository: Mirror['repository'], names: string[], signal: AbortSignal): Promise<BundledBlob[]> {
  const blobs: BundledBlob[] = []
  let size = 0
  using _shared = await repository.writing.share(signal)
  for (const name of names) {
    if (blobs.length >= BUNDLE_BLOBS || size >= BUNDLE_BYTES) break
    const bytes = await readSound(repository, name).catch((error: unknown) => {
      if (!isLost(error)) throw error
    })
    if (!bytes) continue
    blobs.push({ name, bytes })
    size += bytes.length
  }
  return blobs
}
