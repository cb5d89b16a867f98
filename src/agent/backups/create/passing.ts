// Passes over what is as the last backup lists it: the chunk is taken as it stands, but for files in it that have changed, and the walk
// goes on behind it.
import type { Walk } from '../../files/sandbox/walk.ts'
import type { Chunk } from '../format/entries.ts'
import { lastNotAfter, type Manifest } from '../format/manifest.ts'
import type { ManifestCursor } from '../store/manifest-cursor.ts'
import { DEEPEST, type Verdict } from '../tree/same-chunk.ts'
import type { ChunkChecks } from './chunk-checks.ts'

/** No name is after this one. */
const BEHIND_ALL = '\uffff'

interface Passing {
  /** To be awaited before the walk gives anything. */
  begin(): Promise<unknown>
  /**
   * To be asked before what the walk has given is visited. Whether the walk has left it behind; undefined where it is of a range
   * in which nothing is passed over.
   */
  over(key: string): Promise<boolean> | undefined
  /** To be told of each directory that the walk has found as it was. */
  onKept(key: string): void
}

interface PassingDeps {
  previous: Pick<Manifest, 'firstKeys'>
  checks: Pick<ChunkChecks, 'compared'>
  tree: Pick<Walk, 'skipTo'>
  cursor: Pick<ManifestCursor, 'skipTo'>
  /** Takes what is as it was, and visits the rest of it. False where it cannot be taken as it stands. */
  take(chunk: Chunk, verdict: NonNullable<Verdict>): Promise<boolean>
}

/** A range begins where a chunk does, and ends where the next one begins. The top of the tree has the names that it had. */
export function createPassing({ previous, checks, tree, cursor, take }: PassingDeps): Passing {
  const { firstKeys } = previous
  const passed = new Set<number>()
  /** Directories that the walk is in and has found as they were, each in the one before. */
  const kept: string[] = []
  /** The one that is walked. */
  let range = 0

  const isKnown = (directory: string) => passed.has(lastNotAfter(firstKeys, directory)) || kept.includes(directory)

  /**
   * In all directories that the range begins in. What was compared before the walk came to them does not count for what it has
   * walked: they would be listed as they are now, with the names of then, and nobody would look again.
   */
  function areNamesKnown(): boolean {
    const key = firstKeys[range] ?? ''
    let depth = 0
    for (let end = key.indexOf('\0'); end >= 0; end = key.indexOf('\0', end + 1))
      if (++depth > DEEPEST || !isKnown(key.slice(0, end))) return false
    return true
  }

  async function isPassed(): Promise<boolean> {
    if (!areNamesKnown()) return false
    const compared = await checks.compared(range)
    return compared?.verdict ? await take(compared.chunk, compared.verdict) : false
  }

  async function passFrom(index: number): Promise<boolean> {
    range = index
    while (await isPassed()) passed.add(range++)
    cursor.skipTo(range)
    if (range > index) tree.skipTo(firstKeys[range] ?? BEHIND_ALL)
    return range > index
  }

  return {
    begin: () => passFrom(0),
    onKept(key) {
      while (kept.length > 0 && !key.startsWith(`${kept.at(-1)}\0`)) kept.pop()
      kept.push(key)
    },
    over(key) {
      const end = firstKeys[range + 1]
      return end === undefined || key < end ? undefined : passFrom(lastNotAfter(firstKeys, key))
    },
  }
}
