import { childrenOf, readIfThere } from '../../src/kit/files/kernel-files.ts'

/** The processes that this one has started, and that have not ended. */
export const childrenNow = (): number[] => childrenOf(process.pid)

/** Empty where it has ended. */
export const commandOf = (pid: number): string => readIfThere(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')
