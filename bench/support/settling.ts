// How long a server's files are left alone before a backup of them is measured.
import { setTimeout as delay } from 'node:timers/promises'

/** The next backup reads again what was younger than a minute, since its times may hide writes (`mayHideWrites`). */
export const SETTLED_MS = 61_000
/** What is younger than a second is read again in any case. */
export const TICK_MS = 1100

export const settle = (ms = SETTLED_MS) => delay(ms)
