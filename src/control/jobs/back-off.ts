/** 1 s, 2 s, 4 s … up to a minute. */
export const backOffMs = (attempt: number): number => Math.min(1000 * 2 ** Math.min(attempt - 1, 10), 60_000)
