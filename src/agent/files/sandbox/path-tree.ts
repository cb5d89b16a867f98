// A set of paths, and how they relate to each other. Every name is kept once, however many paths lead through it.
import type { Segments } from './paths.ts'

export interface Neighbour {
  /** Where the added path lies, seen from the other. */
  is: 'same' | 'beneath' | 'above'
  other: Segments
}

export interface PathTree {
  /** Adds the path. Answers one of those before it that is the same, above it or beneath it, if there is any. */
  add(path: Segments): Neighbour | undefined
  /** Whether a path above this one, not itself, was added. */
  hasAbove(path: Segments): boolean
  /** Of all names, each counted once where it is. */
  size(): number
}

export function createPathTree(): PathTree {
  /** By the number of the directory and the name, which holds no slash. The top is 0. */
  const nodes = new Map<string, number>()
  /** By the number of a node: the first path that leads through it or ends at it, and the first that ends at it. */
  const through: Segments[] = []
  const ending: (Segments | undefined)[] = []

  return {
    add(path) {
      let node = 0
      let neighbour: Neighbour | undefined
      for (const name of path) {
        const above = ending[node]
        if (above) neighbour ??= { is: 'beneath', other: above }
        through[node] ??= path
        const key = `${node}/${name}`
        const next = nodes.get(key) ?? nodes.size + 1
        nodes.set(key, next)
        node = next
      }
      const same = ending[node]
      const beneath = through[node]
      if (same) neighbour ??= { is: 'same', other: same }
      else if (beneath) neighbour ??= { is: 'above', other: beneath }
      through[node] ??= path
      ending[node] ??= path
      return neighbour
    },
    hasAbove(path) {
      let node: number | undefined = 0
      for (const name of path) {
        if (node === undefined) return false
        if (ending[node]) return true
        node = nodes.get(`${node}/${name}`)
      }
      return false
    },
    size: () => nodes.size,
  }
}
