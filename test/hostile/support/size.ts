// How much of an attack is played. `npm test` plays the short form; `npm run faults -- hostile [times]` plays the whole
// one, that many times as large.

/** 1 in `npm test`. */
export const TIMES = Number(process.env.GAMEKEEPER_TEST_HOSTILE ?? 1)

/** The amount for this run: `short` in `npm test`, never more than `most`. */
export const sized = (short: number, most = Number.POSITIVE_INFINITY) => Math.min(short * TIMES, most)
