// Work in bulk gives way to changes that somebody waits for: while one is under way, it begins no turn of the event loop
// and no sync of the disk, since each of a change's own few would have to wait for those. It gives way for a moment each
// time, so that a stream of changes slows it down and does not stop it (`npm run bench -- noisy`).

const GIVE_WAY_MS = 5

let underWay = 0
/** Those that give way. */
const waiting = new Set<() => void>()

/** Until it is disposed of, work in bulk gives way. */
export function beginUrgent(): Disposable {
  let isOpen = true
  underWay++
  return {
    [Symbol.dispose]() {
      if (!isOpen) return
      isOpen = false
      if (--underWay > 0) return
      for (const go of waiting) go()
    },
  }
}

/** Calls back once nothing urgent is under way, or after a moment; in a later turn of the event loop. */
export function giveWay(then: () => void): void {
  if (underWay === 0) {
    setImmediate(then)
    return
  }
  const go = () => {
    clearTimeout(timer)
    waiting.delete(go)
    setImmediate(then)
  }
  const timer = setTimeout(go, GIVE_WAY_MS)
  waiting.add(go)
}

export const isAnythingUrgent = () => underWay > 0
