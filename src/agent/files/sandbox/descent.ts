// Down a tree and up again, however deep it is, with a bounded number of open directories. The first levels stay open;
// further down only the current directory does, and its parent is reopened by `..`. The result of `..` counts only if
// it is the directory that was left: one that was moved meanwhile could lead anywhere.
import { type BigIntStats, fstatSync } from 'node:fs'
import { hasCode } from '../../../kit/files/errno.ts'
import { type Directory, openAbove, openChild } from './directory.ts'

/** Deeper than nearly every tree, so that these need no `..`. `DEEPEST` of `same-chunk.ts` counts on it. */
const HELD_LEVELS = 32

export interface Descent extends Disposable {
  /** How far below the top. */
  readonly depth: number
  /** Open until one enters or leaves. */
  readonly current: Directory
  /** False where the name is not that of a directory any more. */
  enter(name: string): boolean
  /** Back to the one above. Answers how many levels up that was: more than one where the way back was cut off. */
  leave(): number
}

type Left = Pick<BigIntStats, 'dev' | 'ino'> & { path: string }

/** The top stays the caller's. */
export function openDescent(top: Directory): Descent {
  const held: Directory[] = [top]
  /** What was closed on the way down, the deepest last, and the one below them that is open. */
  const left: Left[] = []
  let deepest: Directory | undefined

  const current = () => deepest ?? (held.at(-1) as Directory)

  function close(): void {
    if (deepest) deepest[Symbol.dispose]()
    else if (held.length > 1) held.pop()?.[Symbol.dispose]()
    deepest = undefined
  }

  function leaveDeepest(from: Directory): number {
    const wanted = left.pop()
    // Right above are the levels that stay open.
    if (!wanted) {
      close()
      return 1
    }
    const above = openIfSame(from, wanted)
    close()
    deepest = above
    if (above) return 1
    return 2 + left.splice(0).length
  }

  return {
    get depth() {
      return held.length - 1 + left.length + (deepest ? 1 : 0)
    },
    get current() {
      return current()
    },
    enter(name) {
      const child = openIfStillThere(current(), name)
      if (!child) return false
      if (held.length < HELD_LEVELS) {
        held.push(child)
        return true
      }
      if (deepest) {
        const { dev, ino } = fstatSync(deepest.fd, { bigint: true })
        left.push({ dev, ino, path: deepest.path })
        deepest[Symbol.dispose]()
      }
      deepest = child
      return true
    },
    leave() {
      if (deepest) return leaveDeepest(deepest)
      close()
      return 1
    },
    [Symbol.dispose]() {
      deepest?.[Symbol.dispose]()
      deepest = undefined
      left.length = 0
      while (held.length > 1) held.pop()?.[Symbol.dispose]()
    },
  }
}

function openIfSame(from: Directory, { dev, ino, path }: Left): Directory | undefined {
  let above: Directory
  try {
    above = openAbove(from, path)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR', 'EACCES')) return undefined
    throw error
  }
  const found = fstatSync(above.fd, { bigint: true })
  if (found.dev === dev && found.ino === ino) return above
  above[Symbol.dispose]()
  return undefined
}

export function openIfStillThere(parent: Directory, name: string): Directory | undefined {
  try {
    return openChild(parent, name)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR', 'ELOOP')) return undefined
    throw error
  }
}
