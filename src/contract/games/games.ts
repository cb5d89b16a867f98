// The games that we know by id, and what each needs from DNS. Data only: a game that is missing here still runs, with
// `game` left empty.

export interface Game {
  name: string
  defaultPort: number
  protocol: 'tcp' | 'udp'
  /** The SRV service name where the game's clients look one up, else null: then players type the port. */
  srv: string | null
}

export const GAMES = {
  'minecraft-java': { name: 'Minecraft: Java Edition', defaultPort: 25565, protocol: 'tcp', srv: '_minecraft._tcp' },
  paper: { name: 'Minecraft: Paper', defaultPort: 25565, protocol: 'tcp', srv: '_minecraft._tcp' },
  'flying-squid': { name: 'Minecraft: flying-squid', defaultPort: 25565, protocol: 'tcp', srv: '_minecraft._tcp' },
  'minecraft-bedrock': { name: 'Minecraft: Bedrock Edition', defaultPort: 19132, protocol: 'udp', srv: null },
  factorio: { name: 'Factorio', defaultPort: 34197, protocol: 'udp', srv: '_factorio._udp' },
  fivem: { name: 'FiveM', defaultPort: 30120, protocol: 'udp', srv: '_cfx._udp' },
  'vintage-story': { name: 'Vintage Story', defaultPort: 42420, protocol: 'tcp', srv: '_vintagestory._tcp' },
  teamspeak: { name: 'TeamSpeak', defaultPort: 9987, protocol: 'udp', srv: '_ts3._udp' },
  mumble: { name: 'Mumble', defaultPort: 64738, protocol: 'tcp', srv: '_mumble._tcp' },
  luanti: { name: 'Luanti (Minetest)', defaultPort: 30000, protocol: 'udp', srv: null },
  terraria: { name: 'Terraria', defaultPort: 7777, protocol: 'tcp', srv: null },
  rust: { name: 'Rust', defaultPort: 28015, protocol: 'udp', srv: null },
  valheim: { name: 'Valheim', defaultPort: 2456, protocol: 'udp', srv: null },
  ark: { name: 'ARK: Survival Evolved', defaultPort: 7777, protocol: 'udp', srv: null },
  palworld: { name: 'Palworld', defaultPort: 8211, protocol: 'udp', srv: null },
  zomboid: { name: 'Project Zomboid', defaultPort: 16261, protocol: 'udp', srv: null },
  enshrouded: { name: 'Enshrouded', defaultPort: 15637, protocol: 'udp', srv: null },
  'counter-strike-2': { name: 'Counter-Strike 2', defaultPort: 27015, protocol: 'udp', srv: null },
  'garrys-mod': { name: "Garry's Mod", defaultPort: 27015, protocol: 'udp', srv: null },
  openttd: { name: 'OpenTTD', defaultPort: 3979, protocol: 'tcp', srv: null },
  teeworlds: { name: 'Teeworlds', defaultPort: 8303, protocol: 'udp', srv: null },
} as const satisfies Record<string, Game>

export type GameId = keyof typeof GAMES
export const GAME_IDS = Object.keys(GAMES) as [GameId, ...GameId[]]
