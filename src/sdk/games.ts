import { type ConsoleLine, type ConsoleQuery, readConsole, sendCommand } from '../contract/games/console.ts'
import { readPlayers } from '../contract/games/players.ts'
import type { PowerAction } from '../contract/games/power.ts'
import { powerServer } from '../contract/games/power-operations.ts'
import { readStats, type StatsPoint, type StatsQuery } from '../contract/games/stats.ts'
import type { CallOptions } from './request.ts'
import { type FollowConsoleOptions, followConsole } from './streams/follow-console.ts'
import type { FollowEventsOptions } from './streams/follow-events.ts'
import { followStats } from './streams/follow-stats.ts'
import type { Transport } from './transport.ts'

export function createPowerApi(transport: Transport) {
  const power = transport.method(powerServer, (serverId: string, action: PowerAction, options: CallOptions = {}) => ({
    params: { serverId },
    body: { action },
    ...options,
  }))
  const act =
    (action: PowerAction) =>
    (serverId: string, options: CallOptions = {}) =>
      power(serverId, action, options)
  return {
    /** Any of them, by its name. */
    act: power,
    /** Each answers the server once it has begun; `power` of the server says how it goes on. */
    start: act('start'),
    stop: act('stop'),
    restart: act('restart'),
    /** SIGKILL: what the game has not saved is lost. */
    kill: act('kill'),
  }
}

export function createConsoleApi(transport: Transport) {
  const read = transport.method(
    readConsole,
    (serverId: string, query: ConsoleQuery = {}, options: CallOptions = {}) => ({
      params: { serverId },
      query,
      ...options,
    }),
  )
  return {
    /** One page of lines, newest first. */
    read,
    /** All lines, newest first. */
    async *all(
      serverId: string,
      query: ConsoleQuery = {},
      options: CallOptions = {},
    ): AsyncGenerator<ConsoleLine, void, undefined> {
      let { before } = query
      for (;;) {
        const page = await read(serverId, { ...query, ...(before === undefined ? {} : { before }) }, options)
        yield* page.data
        if (page.nextCursor === null) return
        before = Number(page.nextCursor)
      }
    },
    /** Lines as they are written, oldest first, across broken connections. */
    follow: (serverId: string, options: FollowConsoleOptions = {}): AsyncGenerator<ConsoleLine, void, undefined> =>
      followConsole(transport, serverId, options),
    /** Sends one line to the game. */
    send: transport.method(sendCommand, (serverId: string, command: string, options: CallOptions = {}) => ({
      params: { serverId },
      body: { command },
      ...options,
    })),
  }
}

export function createStatsApi(transport: Transport) {
  return {
    /** CPU, memory, disk, network and players as a series, oldest first. */
    read: transport.method(readStats, (serverId: string, query: StatsQuery = {}, options: CallOptions = {}) => ({
      params: { serverId },
      query,
      ...options,
    })),
    /** Each point as it is measured, every ten seconds while the game runs, across broken connections. */
    follow: (serverId: string, options: FollowEventsOptions = {}): AsyncGenerator<StatsPoint, void, undefined> =>
      followStats(transport, serverId, options),
  }
}

export function createPlayersApi(transport: Transport) {
  return {
    /** Who plays, or why that is not known. */
    read: transport.method(readPlayers, (serverId: string, options: CallOptions = {}) => ({
      params: { serverId },
      ...options,
    })),
  }
}
