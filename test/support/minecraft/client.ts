// A real Minecraft client (mineflayer) that joins, builds, wrecks and looks.
import assert from 'node:assert/strict'
import type { EventEmitter } from 'node:events'
import { createRequire } from 'node:module'
import { until } from '../until.ts'
import { SQUID_VERSION } from './flying-squid.ts'

/** Of a package of its own (package.json beside this file), which only `npm test` installs: it is large. */
const require = createRequire(import.meta.url)

interface Position {
  floored(): Position
  offset(east: number, up: number, south: number): Position
  minus(other: Position): Position
}

interface Block {
  name: string
}

/** As much of mineflayer's as is used here. */
interface Bot extends EventEmitter {
  entity: { position: Position }
  registry: { itemsByName: { gold_block: { id: number } } }
  creative: { setInventorySlot(slot: number, item: unknown): Promise<void> }
  setQuickBarSlot(slot: number): void
  blockAt(position: Position): Block | null
  placeBlock(on: Block, face: Position): Promise<void>
  dig(block: Block, isForced: boolean): Promise<void>
  quit(): void
}

/** As the list of servers of a client sees it. */
export interface Status {
  description: { text: string }
  players: { online: number }
}

export const lookAt = (port: number): Promise<Status | undefined> =>
  require('minecraft-protocol')
    .ping({ host: '127.0.0.1', port, version: SQUID_VERSION })
    .catch(() => undefined)

export interface Player {
  /** Puts a block of gold on the ground at each of these places beside where players come into the world. */
  build(places: readonly Place[]): Promise<void>
  wreck(places: readonly Place[]): Promise<void>
  look(places: readonly Place[]): string[]
  leave(): Promise<void>
}

/** East and south of the player, on the ground. */
export type Place = readonly [east: number, south: number]

export async function joinMinecraft(port: number, username: string): Promise<Player> {
  const bot: Bot = require('mineflayer').createBot({
    host: '127.0.0.1',
    port,
    username,
    version: SQUID_VERSION,
    auth: 'offline',
    logErrors: false,
  })
  await spawned(bot)
  const origin = bot.entity.position.floored()
  const above = ([east, south]: Place) => origin.offset(east, 0, south)

  return {
    async build(places) {
      const Item = require('prismarine-item')(SQUID_VERSION)
      await bot.creative.setInventorySlot(36, new Item(bot.registry.itemsByName.gold_block.id, 64))
      bot.setQuickBarSlot(0)
      for (const place of places) {
        const ground = bot.blockAt(above(place).offset(0, -1, 0))
        assert.ok(ground)
        await bot.placeBlock(ground, origin.offset(0, 1, 0).minus(origin))
      }
    },
    async wreck(places) {
      for (const place of places) {
        const block = bot.blockAt(above(place))
        assert.ok(block)
        await bot.dig(block, true)
      }
    },
    look: (places) => places.map((place) => bot.blockAt(above(place))?.name ?? 'nothing'),
    async leave() {
      const ended = new Promise<void>((resolve) => void bot.once('end', () => resolve()))
      bot.quit()
      await ended
    },
  }
}

/** Fails with what the server said where it does not let the player in. */
async function spawned(bot: Bot): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  bot.once('spawn', () => resolve())
  bot.once('kicked', (reason) => reject(new Error(`sent away: ${reason}`)))
  bot.once('error', reject)
  bot.once('end', (reason) => reject(new Error(`the connection ended: ${reason}`)))
  try {
    await promise
    // The land around the player comes after the player.
    const near = [-4, 4].flatMap((east) => [-4, 4].map((south) => [east, south] as const))
    const isThere = ([east, south]: Place) => bot.blockAt(bot.entity.position.offset(east, -1, south)) !== null
    await until(async () => near.every(isThere))
  } finally {
    bot.on('error', () => {})
  }
}
