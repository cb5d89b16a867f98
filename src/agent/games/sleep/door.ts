// The port of a game that sleeps, held by the agent: whoever comes to play wakes the game.
import type { Launch, LaunchPort } from '../../../contract/games/launch.ts'
import { openMinecraftDoor, openTcpDoor } from './tcp-door.ts'
import { openUdpDoor } from './udp-door.ts'

/** Somebody wants to play. */
export interface Knock {
  address: string
  /** As they say themselves, where the protocol tells. */
  player: string | null
}

/** `refused`: it does not start now. */
export type OnKnock = (knock: Knock) => 'waking' | 'refused'

export interface Door {
  /** Resolves once the port is free. */
  close(): Promise<void>
}

/** Fails where the port cannot be had. */
export type OpenDoor = (launch: Launch, onKnock: OnKnock) => Promise<Door>

/** The one that players come to: the first that the template names. */
export const doorPortOf = ({ ports }: Pick<Launch, 'ports'>): LaunchPort | undefined => ports[0]

/** By what it is asked who plays: other games over TCP have no words that we know. */
const MINECRAFT_QUERIES: ReadonlySet<string> = new Set(['minecraft', 'minecraftping', 'minecraftvanilla'])

export const openDoor: OpenDoor = async (launch, onKnock) => {
  const port = doorPortOf(launch)
  if (!port) throw new Error('the game has no port')
  if (port.protocol === 'udp') return openUdpDoor(port.port, onKnock)
  const isMinecraft = MINECRAFT_QUERIES.has(launch.query?.type ?? '')
  return isMinecraft ? openMinecraftDoor(port.port, onKnock) : openTcpDoor(port.port, onKnock)
}
