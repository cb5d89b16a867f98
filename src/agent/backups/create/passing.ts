// Passes over what is as the last backup lists it: the chunk is taken as it stands, and the walk goes on behind it.
import type { Walk } from '../../files/sandbox/walk.ts'
import type { Chunk, EntryCounts } from '../format/entries.ts'
import { lastNotAfter, type Manifest } from '../format/manifest.ts'
import type { ManifestCursor } from '../store/manifest-cursor.ts'
import type { ChunkChecks } from './chunk-checks.ts'

/** No name is after this one. */
const BEHIND_ALL = '\uffff'

export interface Passing {
  /** To be awaited before the walk gives anything. */
  begin(): Promise<boolean>
  /**
   * To be asked before what the walk has given is visited. Whether the walk has left it behind; undefined where it is of a range
   * in which nothing is passed over.
   */
  over(key: string): Promise<boolean> | undefined
}

export interface PassingDeps {
  previous: Pick<Manifest, 'firstKeys'>
  checks: Pick<ChunkChecks, 'compared'>
  tree: Pick<Walk, 'skipTo'>
  cursor: Pick<ManifestCursor, 'skipTo'>
  /** False where it cannot be taken as it stands. */
  take(chunk: Chunk, counts: EntryCounts): Promise<boolean>
}

/** A range begins where a chunk does, and ends where the next one begins. The top of the tree has the names that it had. */
export function createPassing({ previous, checks, tree, cursor, take }: PassingDeps): Passing {
  const { firstKeys } = previous
  /** Those whose directories are as they were, and so have the names in them that they had. */
  const listed = new Set<number>()
  /** The one that is walked. */
  let range = 0

  /** Of all directories that the range begins in. */
  function areNamesKnown(): boolean {
    const key = firstKeys[range] ?? ''
    for (let end = key.lastIndexOf('\0'); end >= 0; end = key.lastIndexOf('\0', end - 1))
      if (!listed.has(lastNotAfter(firstKeys, key.slice(0, end)))) return false
    return true
  }

  async function isPassed(): Promise<boolean> {
    const compared = await checks.compared(range)
    if (!compared || compared.verdict === null) return false
    listed.add(range)
    const { chunk, verdict } = compared
    return verdict !== 'names' && areNamesKnown() && (await take(chunk, verdict))
  }

  async function passFrom(index: number): Promise<boolean> {
    range = index
    while (await isPassed()) range++
    cursor.skipTo(range)
    if (range > index) tree.skipTo(firstKeys[range] ?? BEHIND_ALL)
    return range > index
  }

  return {
    begin: () => passFrom(0),
    over(key) {
      const end = firstKeys[range + 1]
      return end === undefined || key < end ? undefined : passFrom(lastNotAfter(firstKeys, key))
    },
  }
}
