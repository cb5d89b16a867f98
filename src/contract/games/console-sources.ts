// Apart from the schemas: a supervisor needs no more than this of the contract, and loads nothing else.
export const CONSOLE_SOURCES = ['stdout', 'stderr', 'command', 'gamekeeper'] as const
export type ConsoleSource = (typeof CONSOLE_SOURCES)[number]
