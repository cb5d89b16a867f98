import type { Server } from '../../../../src/sdk/index.ts'

/** Every word is in the name, the game, the address or a label, in any letter case. */
export function matchesSearch(server: Server, address: string | null, search: string): boolean {
  const labels = Object.entries(server.labels).map(([name, value]) => `${name}=${value}`)
  const text = [server.name, server.game ?? '', address ?? '', ...labels].join('\n').toLowerCase()
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}
