// Which blocks a store has, for the worker threads: the first 64 bits of their ids, in shared memory. They need not
// compress what is there already (`npm run bench -- backups`, `changed`).

const FILTER_BYTES = 8

export function createFilter(slotCount: number): Uint32Array<SharedArrayBuffer> {
  return new Uint32Array(new SharedArrayBuffer(slotCount * FILTER_BYTES))
}

export function addToFilter(view: Uint32Array, id: Uint8Array, at: number): void {
  const [low, high] = halves(id, at)
  const mask = view.length / 2 - 1
  let slot = low & mask
  while (view[slot * 2] !== 0 || view[slot * 2 + 1] !== 0) {
    if (view[slot * 2] === low && view[slot * 2 + 1] === high) return
    slot = (slot + 1) & mask
  }
  view[slot * 2 + 1] = high
  view[slot * 2] = low
}

/** A hint only: read by other threads while it is written. Whoever acts on it has the index confirm it. */
export function filterHas(view: Uint32Array, id: Uint8Array, at = 0): boolean {
  const [low, high] = halves(id, at)
  const mask = view.length / 2 - 1
  let slot = low & mask
  while (view[slot * 2] !== 0 || view[slot * 2 + 1] !== 0) {
    if (view[slot * 2] === low && view[slot * 2 + 1] === high) return true
    slot = (slot + 1) & mask
  }
  return false
}

const halves = (id: Uint8Array, at: number): [number, number] => [wordAt(id, at), wordAt(id, at + 4)]

export function wordAt(id: Uint8Array, at: number): number {
  return ((id[at] ?? 0) | ((id[at + 1] ?? 0) << 8) | ((id[at + 2] ?? 0) << 16) | ((id[at + 3] ?? 0) << 24)) >>> 0
}
