// What of a chunk of a manifest is still there as it was: that is then taken as it stands, and nobody else looks at it. What is new
// beside it is not seen here: it shows by the directory that holds it, which has changed.
import { lstatSync } from 'node:fs'
import { asBuffer } from '../../../kit/bytes.ts'
import { type Descriptor, openDescriptor } from '../../../kit/files/descriptor.ts'
import { addressHere, addressOfBytes, descriptorPath } from '../../files/sandbox/addresses.ts'
import { OPEN_DIRECTORY } from '../../files/sandbox/directory.ts'
import { count, type EntryCounts, type EntryOf, type KeyedEntry, NO_ENTRIES } from '../format/entries.ts'
import { createEntryDecoder } from '../format/entry-decoder.ts'
import { isAsItStands } from './unchanged.ts'

/**
 * What is open at a time, at most: as many levels as a walk holds open. Deeper down nothing is known, and must not be: where a directory is
 * moved away there while it is walked, the walk cannot go back to the one above, and leaves out what that holds.
 */
export const DEEPEST = 32
/** Beyond this the range is walked: that looks at each once, and lists its directory once. */
const CHANGED_AT_MOST = 64
const LOOK = { bigint: true, throwIfNoEntry: false } as const

export interface ComparedTree {
  /** Of its top, which stays open meanwhile. */
  address: string
  /** No other file system counts. */
  dev: bigint
}

/**
 * Of a chunk whose directories are all as they were: which of the rest, by their index, are not, and what the others are. Null where a
 * directory is not, where there are many others, or where nobody knows.
 */
export type Verdict = { counts: EntryCounts; changed: number[] } | null

interface Comparison extends Disposable {
  /** Looks at this many entries. Undefined while there are more. */
  step(entries: number): Verdict | undefined
}

export function openComparison({ address, dev }: ComparedTree, raw: Uint8Array): Comparison {
  const next = createEntryDecoder({ raw: asBuffer(raw) })
  const way = openWay(addressHere(address))
  const verdict = { counts: { ...NO_ENTRIES }, changed: [] as number[] }

  function isThere(expected: KeyedEntry): boolean {
    const stats = lstatSync(way.addressOf(expected.key), LOOK)
    return stats !== undefined && stats.dev === dev && isAsItStands(stats, expected)
  }

  function look(expected: EntryOf<unknown>): boolean {
    if (isThere(expected)) count(verdict.counts, expected)
    else if (expected.kind === 'directory') return false
    else verdict.changed.push(expected.ordinal)
    return verdict.changed.length <= CHANGED_AT_MOST
  }

  return {
    step(entries) {
      try {
        for (let left = entries; left > 0; left--) {
          const expected = next()
          if (!expected) return verdict
          if (!look(expected)) return null
        }
        return undefined
      } catch {
        // Whoever walks there is told why.
        return null
      }
    },
    [Symbol.dispose]: way[Symbol.dispose],
  }
}

/** In another thread. */
export function compareChunks(tree: ComparedTree, chunks: readonly Uint8Array[]): Verdict[] {
  return chunks.map((raw) => {
    using comparison = openComparison(tree, raw)
    return comparison.step(Number.POSITIVE_INFINITY) ?? null
  })
}

interface Level {
  /** What the order keys begin with of all that it holds. */
  prefix: string
  address: string
  opened: Descriptor | undefined
}

/** From one order key to the next. Each directory on the way is opened by its name in the one above: no symlink is followed. */
function openWay(top: string) {
  const levels: [Level, ...Level[]] = [{ prefix: '', address: top, opened: undefined }]

  function enter(above: Level, name: string): Level {
    if (levels.length > DEEPEST) throw new Error('it is too deep')
    const opened = openDescriptor(addressOfBytes(above.address, name), OPEN_DIRECTORY)
    const level = { prefix: `${above.prefix}${name}\0`, address: descriptorPath(opened.fd), opened }
    levels.push(level)
    return level
  }

  function close(): void {
    levels.pop()?.opened?.[Symbol.dispose]()
  }

  return {
    addressOf(key: string): string | Buffer {
      let level = levels.at(-1) ?? levels[0]
      for (; !key.startsWith(level.prefix); level = levels.at(-1) ?? levels[0]) close()
      for (;;) {
        const from = level.prefix.length
        const end = key.indexOf('\0', from)
        if (end < 0) return addressOfBytes(level.address, key.slice(from))
        level = enter(level, key.slice(from, end))
      }
    },
    [Symbol.dispose]() {
      while (levels.length > 1) close()
    },
  }
}
