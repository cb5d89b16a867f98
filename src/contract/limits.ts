// What a tenant may have, ask for or hold at once: each limit once, by name, for the code that keeps to it, the messages
// that speak of it and the table in docs/limits.md.

/** Searches under way; `rate_limited` where more wait on a server than may. */
export const SEARCHES = { atOnce: 4, atOncePerServer: 2, waitingPerServer: 8 } as const

/** Uploads by tus that have begun and not ended, of one server; `server_busy` beyond. */
export const UNFINISHED_UPLOADS_MAX = 1000
