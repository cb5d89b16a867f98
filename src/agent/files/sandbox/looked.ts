// What another thread sees of names in a directory, and of all that the directories among them hold, as rows of numbers: an
// object for each name would cost both threads more than looking does.
import { type BigIntStats, constants, fstatSync, lstatSync, readdirSync } from 'node:fs'
import { openDescriptor } from '../../../kit/files/descriptor.ts'
import { addressIn, descriptorPath } from './addresses.ts'
import { OPEN_DIRECTORY } from './directory.ts'
import { nameFromLatin1 } from './names.ts'

/** What a walk tells of a thing. */
export type EntryStats = Pick<
  BigIntStats,
  | ('dev' | 'ino' | 'mode' | 'nlink' | 'uid' | 'gid' | 'size' | 'blocks' | 'mtimeMs' | 'mtimeNs' | 'ctimeNs')
  | ('isFile' | 'isDirectory' | 'isSymbolicLink')
>

/** Null where nothing has the name any more. */
export type Seen = (EntryStats & { readonly seenAt: number }) | null

export interface Looked {
  /** When it began. */
  seenAt: number
  /** One for each name, in their order; fewer where looking at all would have taken long. */
  rows: BigInt64Array
  /** Of directories among them, by the index of their name. */
  lists: Map<number, Listed>
}

/** What a directory held. */
export interface Listed extends Looked {
  dev: bigint
  ino: bigint
  /** Sorted by their bytes, which are read as latin1, with a slash between them: one text is cloned faster than many. */
  names: string
}

const FIELDS = 10
/** Instead of a mode. */
const GONE = 0n
const FAILED = -1n
/** Entries that are looked at in one go. */
const LOOKED_AT_ONCE = 1024
/** A directory with more is read by the walk itself, which then has its names looked at some at a time. */
const LISTED_AT_MOST = 4096
/** Further down the walk asks again. */
const DEEPEST = 32

/** In another thread. `address` is that of a directory which somebody holds open. */
export function look(address: string, names: readonly string[]): Looked {
  const dev = statsOf(`${address}/.`)?.dev
  return lookWithin(address, names, { dev, left: LOOKED_AT_ONCE, depth: 0 })
}

interface Bounds {
  /** No other file system is entered. */
  dev: bigint | undefined
  /** Entries, about. */
  left: number
  depth: number
}

function lookWithin(address: string, names: readonly string[], bounds: Bounds): Looked {
  const seenAt = Date.now()
  const rows = new BigInt64Array(names.length * FIELDS)
  const lists: Looked['lists'] = new Map()
  const isTop = bounds.depth === 0
  let count = 0
  for (const name of names) {
    if (isTop && bounds.left <= 0) break
    const at = addressIn(address, nameFromLatin1(name))
    const isDirectory = fillRow(rows, count * FIELDS, at, bounds.dev)
    bounds.left--
    if (isDirectory && bounds.left > 0 && bounds.depth < DEEPEST) {
      const listed = list(at, bounds)
      if (listed) lists.set(count, listed)
    }
    count++
  }
  return { seenAt, rows: count === names.length ? rows : rows.slice(0, count * FIELDS), lists }
}

/** Undefined where the walk has to see for itself. */
function list(address: string | Buffer, bounds: Bounds): Listed | undefined {
  try {
    using opened = openDescriptor(address, OPEN_DIRECTORY)
    const { dev, ino } = fstatSync(opened.fd, { bigint: true })
    const path = descriptorPath(opened.fd)
    const names = readdirSync(path, { encoding: 'latin1' })
    if (names.length > LISTED_AT_MOST) return undefined
    names.sort()
    bounds.depth++
    const looked = lookWithin(path, names, bounds)
    bounds.depth--
    return { ...looked, dev, ino, names: names.join('/') }
  } catch {
    return undefined
  }
}

const statsOf = (address: string | Buffer) => lstatSync(address, { bigint: true, throwIfNoEntry: false })

/** Whether it is a directory of that file system. */
function fillRow(rows: BigInt64Array, at: number, address: string | Buffer, dev: bigint | undefined): boolean {
  try {
    const stats = statsOf(address)
    rows[at] = stats?.mode ?? GONE
    if (!stats) return false
    rows[at + 1] = stats.dev
    rows[at + 2] = stats.ino
    rows[at + 3] = stats.nlink
    rows[at + 4] = stats.uid
    rows[at + 5] = stats.gid
    rows[at + 6] = stats.size
    rows[at + 7] = stats.blocks
    rows[at + 8] = stats.mtimeNs
    rows[at + 9] = stats.ctimeNs
    return stats.isDirectory() && stats.dev === dev
  } catch {
    // Whoever comes to it looks again, and is told why.
    rows[at] = FAILED
    return false
  }
}

/** How many names were looked at. */
export const lookedCount = ({ rows }: Looked) => rows.length / FIELDS

/** Undefined where it has not been looked at. */
export function seenIn(looked: Looked, index: number): Seen | undefined {
  const at = index * FIELDS
  const mode = looked.rows[at]
  if (mode === undefined || mode === FAILED) return undefined
  return mode === GONE ? null : new StatsInRow(looked, at)
}

/** As `seenIn` would say, without making anything: a walk asks it of every name. */
export function isDirectoryIn({ rows }: Looked, index: number): boolean {
  const mode = rows[index * FIELDS] ?? GONE
  return mode > GONE && (Number(mode) & constants.S_IFMT) === constants.S_IFDIR
}

export const namesIn = ({ names }: Listed): string[] => (names === '' ? [] : names.split('/'))

/** A row as the stats that it was. */
class StatsInRow implements EntryStats {
  readonly seenAt: number
  readonly #rows: BigInt64Array
  readonly #at: number
  readonly #type: number

  constructor({ seenAt, rows }: Looked, at: number) {
    this.seenAt = seenAt
    this.#rows = rows
    this.#at = at
    this.#type = Number(rows[at]) & constants.S_IFMT
  }

  #field(index: number): bigint {
    return this.#rows[this.#at + index] ?? 0n
  }

  get mode(): bigint {
    return this.#field(0)
  }
  get dev(): bigint {
    return this.#field(1)
  }
  get ino(): bigint {
    return BigInt.asUintN(64, this.#field(2))
  }
  get nlink(): bigint {
    return this.#field(3)
  }
  get uid(): bigint {
    return this.#field(4)
  }
  get gid(): bigint {
    return this.#field(5)
  }
  get size(): bigint {
    return this.#field(6)
  }
  get blocks(): bigint {
    return this.#field(7)
  }
  get mtimeMs(): bigint {
    return this.mtimeNs / 1_000_000n
  }
  get mtimeNs(): bigint {
    return this.#field(8)
  }
  get ctimeNs(): bigint {
    return this.#field(9)
  }
  isFile(): boolean {
    return this.#type === constants.S_IFREG
  }
  isDirectory(): boolean {
    return this.#type === constants.S_IFDIR
  }
  isSymbolicLink(): boolean {
    return this.#type === constants.S_IFLNK
  }
}
