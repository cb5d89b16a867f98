// Node makes an object for each `process.nextTick`, several times a request. The engine learns from the first of them how
// to make it fast. Those of our start differ so much that it gives up, for as long as the process lives; after a few
// thousand that are alike it has learnt it and keeps it. That is a twentieth of a small request (`npm run bench -- api`).
const TICKS = 5000

export function settleTicks(): Promise<void> {
  return new Promise((resolve) => {
    let left = TICKS
    const tick = () => {
      left--
      if (left === 0) resolve()
      else process.nextTick(tick)
    }
    process.nextTick(tick)
  })
}
