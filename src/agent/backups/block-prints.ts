// Of a large file that has changed, most blocks mostly have not. A print tells which, for a tenth of the price of a name. It
// is no name: it is made with a key that is drawn when the store is opened and never leaves memory, as the prints do not.
// Without the key nobody can make two blocks with one print; by chance it happens once in 2^115 pairs. See
// docs/decisions/0005-prints.md.
import { createCipheriv } from 'node:crypto'
import { BLOCK_BYTES, ID_BYTES } from './format.ts'

export const PRINT_KEY_BYTES = 16
export const PRINT_BYTES = 16
const NONCE = Buffer.alloc(12)

/** A smaller file is read and named in less time than it takes to keep its prints. */
export const PRINTED_FROM_BYTES = 1024 * 1024

/** The blocks of a file, or of a part of one, as they were when it was last read. */
export interface Prints {
  /** One for each block. No Buffers, of which a slice is a view. */
  prints: Uint8Array
  /** The name of each. */
  ids: Uint8Array
}

export type Printer = (block: Uint8Array) => Buffer

/** A GMAC. Its nonce may be the same each time, since the prints are as secret as the key. */
export function createPrinter(key: Uint8Array): Printer {
  return (block) => {
    const mac = createCipheriv('aes-128-gcm', key, NONCE)
    mac.setAAD(block)
    mac.final()
    return mac.getAuthTag()
  }
}

/** In memory of its own, for another thread. */
export function printsBetween({ prints, ids }: Prints, from: number, to: number): Prints {
  const [first, end] = [Math.floor(from / BLOCK_BYTES), Math.ceil(to / BLOCK_BYTES)]
  return {
    prints: prints.slice(first * PRINT_BYTES, end * PRINT_BYTES),
    ids: ids.slice(first * ID_BYTES, end * ID_BYTES),
  }
}

/** Where the id stands of the block with that number, if its print is still the same; otherwise -1. */
export function findPrint({ prints }: Prints, number: number, print: Buffer): number {
  const [at, end] = [number * PRINT_BYTES, (number + 1) * PRINT_BYTES]
  return end <= prints.length && print.compare(prints, at, end) === 0 ? number * ID_BYTES : -1
}

export interface PrintCache {
  get(serverId: string, path: string): Prints | undefined
  set(serverId: string, path: string, prints: Prints): void
}

/** Those that were made longest ago go first. */
export function createPrintCache(bytesAtMost: number): PrintCache {
  const files = new Map<string, Prints>()
  let bytes = 0
  const keyOf = (serverId: string, path: string) => `${serverId}${path}`
  const sizeOf = (key: string, { prints, ids }: Prints) => 2 * key.length + prints.length + ids.length

  function remove(key: string): void {
    const held = files.get(key)
    if (held) bytes -= sizeOf(key, held)
    files.delete(key)
  }

  return {
    get: (serverId, path) => files.get(keyOf(serverId, path)),
    set(serverId, path, prints) {
      const key = keyOf(serverId, path)
      remove(key)
      files.set(key, prints)
      bytes += sizeOf(key, prints)
      for (const oldest of files.keys()) {
        if (bytes <= bytesAtMost) break
        remove(oldest)
      }
    },
  }
}
