// Times of files as Node sets them, and as headers have them.

/** In milliseconds. */
export const wholeSeconds = (date: Date) => Math.floor(date.getTime() / 1000) * 1000

/**
 * Node takes times as seconds in a double, which today are 238 ns apart: the first that is not before the time. Late
 * rather than early, so that a time of whole milliseconds still reads as that millisecond. Before 1970 as text: Node takes
 * a negative number for the time that it is now.
 */
export function secondsOf(ns: bigint): number | string {
  let seconds = Number(ns) / 1e9
  const step = 2 ** (Math.floor(Math.log2(Math.abs(seconds) + 1)) - 52)
  while (BigInt(Math.floor((seconds - Math.floor(seconds)) * 1e9)) + BigInt(Math.floor(seconds)) * 1_000_000_000n < ns)
    seconds += step
  return seconds < 0 ? String(seconds) : seconds
}
