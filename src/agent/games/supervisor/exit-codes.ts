// What is left of a signal where something stands between a game and whoever asks how it ended.

const SIGNALS: Readonly<Record<number, NodeJS.Signals>> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  3: 'SIGQUIT',
  4: 'SIGILL',
  6: 'SIGABRT',
  7: 'SIGBUS',
  8: 'SIGFPE',
  9: 'SIGKILL',
  11: 'SIGSEGV',
  13: 'SIGPIPE',
  15: 'SIGTERM',
  24: 'SIGXCPU',
  25: 'SIGXFSZ',
}

/** bubblewrap and containers end with 128 and the number of the signal that ended the game. */
export function endOfCode(
  code: number | null,
  signal: NodeJS.Signals | null = null,
): { code: number | null; signal: NodeJS.Signals | null } {
  const inner = code !== null && code > 128 ? SIGNALS[code - 128] : undefined
  return inner ? { code: null, signal: inner } : { code, signal }
}
