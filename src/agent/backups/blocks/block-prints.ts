// Most stretches of a large file that has changed have not. A print (a keyed fingerprint) tells which, for a tenth of
// the cost of hashing their blocks. It does not replace a block's name: its key and the prints never leave this service.
// Without the key nobody can construct two stretches with the same print; by chance it happens once in 2^113 pairs. See
// docs/decisions/0005-prints.md.
import { createMutex } from '../../../kit/waiting/mutex.ts'
import { BLOCK_BYTES, ID_BYTES } from '../format/format.ts'
import { GMAC_BYTES } from '../format/gmac.ts'

export const PRINT_BYTES = GMAC_BYTES
/** What has one print: to begin one costs as much as to go through 100 KB. */
export const STRETCH_BLOCKS = 4
export const STRETCH_BYTES = STRETCH_BLOCKS * BLOCK_BYTES

/** A smaller file is read and named in less time than it takes to keep its prints. */
export const PRINTED_FROM_BYTES = 1024 * 1024

/** The blocks of a file, or of a part of one, as they were when it was last read. */
export interface Prints {
  /** One for each stretch. No Buffers, of which a slice is a view. */
  prints: Uint8Array
  /** The name of each block; of one of zeros, zeros. */
  ids: Uint8Array
}

/** Of so many bytes of a file. */
export const printBytes = (length: number) => Math.ceil(length / STRETCH_BYTES) * PRINT_BYTES

/** In memory of its own, for another thread. `from` is where a stretch begins. */
export function printsBetween({ prints, ids }: Prints, from: number, to: number): Prints {
  const [firstId, endId] = [(from / BLOCK_BYTES) * ID_BYTES, Math.ceil(to / BLOCK_BYTES) * ID_BYTES]
  return { prints: prints.slice(printBytes(from), printBytes(to)), ids: ids.slice(firstId, endId) }
}

/** Whether the stretch with that number is what it was. */
export function isPrintOf({ prints }: Prints, stretch: number, print: Buffer): boolean {
  const [at, end] = [stretch * PRINT_BYTES, (stretch + 1) * PRINT_BYTES]
  return end <= prints.length && print.compare(prints, at, end) === 0
}

/** A file of a server, by a name that only the cache understands. */
export type NamedPrints = readonly [name: string, prints: Prints]

/** Where prints outlive their process. */
export interface KeptPrints {
  read(): AsyncIterable<NamedPrints>
  write(all: Iterable<NamedPrints>): Promise<void>
  drop(): void
}

export interface PrintCache {
  /** Once this resolves, what was kept is known too. */
  load(): Promise<void>
  get(serverId: string, path: string): Prints | undefined
  set(serverId: string, path: string, prints: Prints): void
  /** Nothing of the server is known or kept any more. */
  forget(serverId: string): Promise<void>
  /** Keeps them, if any are new. */
  keep(): Promise<void>
}

/** Those that were made longest ago go first. */
export function createPrintCache(bytesAtMost: number, kept?: KeptPrints): PrintCache {
  const files = new Map<string, Prints>()
  let bytes = 0
  let isNew = false
  let loading: Promise<void> | undefined
  /** Who forgets while they are being kept would see them come back. */
  const inTurn = createMutex()
  const keyOf = (serverId: string, path: string) => `${serverId}${path}`
  const sizeOf = (key: string, { prints, ids }: Prints) => 2 * key.length + prints.length + ids.length

  function remove(key: string): void {
    const held = files.get(key)
    if (held) bytes -= sizeOf(key, held)
    files.delete(key)
  }

  function add(key: string, prints: Prints): void {
    remove(key)
    files.set(key, prints)
    bytes += sizeOf(key, prints)
    for (const oldest of files.keys()) {
      if (bytes <= bytesAtMost) break
      remove(oldest)
    }
  }

  function load(): Promise<void> {
    loading ??= (async () => {
      for await (const [key, prints] of kept?.read() ?? []) add(key, prints)
    })()
    return loading
  }

  return {
    load,
    forget: (serverId) =>
      inTurn(async () => {
        await load()
        for (const key of files.keys()) if (key.startsWith(keyOf(serverId, '/'))) remove(key)
        // Also where none is known: what was kept may have had to give way here.
        kept?.drop()
        isNew = true
      }),
    get: (serverId, path) => files.get(keyOf(serverId, path)),
    set(serverId, path, prints) {
      add(keyOf(serverId, path), prints)
      isNew = true
    },
    keep: () =>
      inTurn(async () => {
        if (isNew) await kept?.write(files)
        isNew = false
      }),
  }
}
