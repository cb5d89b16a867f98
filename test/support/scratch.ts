// Where tests put what is thrown away at once.
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'

/** In memory where there is such a place: a kill does not care whether syncs are slow, and rounds are many times quicker. */
export const scratchBase = () => (existsSync('/dev/shm') ? '/dev/shm' : tmpdir())
