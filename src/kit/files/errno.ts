/** Errors are told apart by their code, never by their text. */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(error.code as string)
}

/** For `catch`: what is not there needs no taking away. */
export function ignoreAbsent(error: unknown): void {
  if (!hasCode(error, 'ENOENT')) throw error
}

/** Nothing is said by it of what was to be opened: only that this process, or the machine, has too much open already. */
export const isOutOfDescriptors = (error: unknown): boolean => hasCode(error, 'EMFILE', 'ENFILE')

/** Also where an error was caused by a full disk. */
export function isDiskFull(error: unknown): boolean {
  return hasCode(error, 'ENOSPC', 'EDQUOT') || (error instanceof Error && isDiskFull(error.cause))
}
