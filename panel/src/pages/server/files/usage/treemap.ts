// Rectangles whose areas are as the sizes, each as near to a square as can be (Bruls, Huizing, van Wijk: Squarified Treemaps).

export interface Sized {
  sizeBytes: number
}

export interface Tile<T> {
  item: T
  /** In percent of the whole. */
  x: number
  y: number
  width: number
  height: number
}

interface Box {
  x: number
  y: number
  width: number
  height: number
}

/** `aspect` is width by height of the place that they fill. Nothing is made of what has no size. */
export function tilesOf<T extends Sized>(items: readonly T[], aspect: number): Tile<T>[] {
  const sorted = items.filter(({ sizeBytes }) => sizeBytes > 0).toSorted((a, b) => b.sizeBytes - a.sizeBytes)
  const total = sorted.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  const whole = { x: 0, y: 0, width: 100 * aspect, height: 100 }
  const scale = (whole.width * whole.height) / total
  const tiles: Tile<T>[] = []
  let box: Box = whole
  for (let start = 0; start < sorted.length; ) {
    const end = rowEnd(sorted, start, scale, Math.min(box.width, box.height))
    box = placeRow(sorted.slice(start, end), scale, box, tiles)
    start = end
  }
  return tiles.map((tile) => ({ ...tile, x: tile.x / aspect, width: tile.width / aspect }))
}

/** As many in a row along the short side as make its worst rectangle better. */
function rowEnd(items: readonly Sized[], start: number, scale: number, side: number): number {
  let sum = 0
  let worst = Number.POSITIVE_INFINITY
  const largest = (items[start]?.sizeBytes ?? 0) * scale
  for (let end = start; end < items.length; end++) {
    const area = (items[end]?.sizeBytes ?? 0) * scale
    const nextSum = sum + area
    const next = Math.max((side * side * largest) / nextSum ** 2, nextSum ** 2 / (side * side * area))
    if (next > worst) return end
    sum = nextSum
    worst = next
  }
  return items.length
}

/** Returns what is left of the box. */
function placeRow<T extends Sized>(row: readonly T[], scale: number, box: Box, tiles: Tile<T>[]): Box {
  const area = row.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) * scale
  const isColumn = box.width >= box.height
  const thickness = area / (isColumn ? box.height : box.width)
  let offset = 0
  for (const item of row) {
    const length = (item.sizeBytes * scale) / thickness
    tiles.push(
      isColumn
        ? { item, x: box.x, y: box.y + offset, width: thickness, height: length }
        : { item, x: box.x + offset, y: box.y, width: length, height: thickness },
    )
    offset += length
  }
  return isColumn
    ? { ...box, x: box.x + thickness, width: box.width - thickness }
    : { ...box, y: box.y + thickness, height: box.height - thickness }
}
