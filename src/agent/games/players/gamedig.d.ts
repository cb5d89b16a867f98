// What we use of gamedig, which comes without types.
declare module 'gamedig' {
  export interface QueryState {
    /** Whatever a game has answered: none of it is what it says it is until it was looked at. */
    numplayers: unknown
    maxplayers: unknown
    players: unknown
  }
  /** By their ids. */
  export const games: Readonly<Record<string, unknown>>
  export class GameDig {
    query(options: Record<string, unknown>): Promise<QueryState>
    /** Its own UDP socket, once it has needed one. */
    readonly queryRunner: { udpSocket: { socket: { close(): void } | null } }
  }
}
