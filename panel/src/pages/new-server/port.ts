const LAST_PORT = 65_535

/** The first one from the game's usual port on that no other server has. */
export function freePort(usual: number, taken: readonly (number | null)[]): number {
  let port = usual
  while (taken.includes(port) && port < LAST_PORT) port++
  return port
}
