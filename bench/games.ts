// What games cost the service, and what the service costs games. A part is a function that prints its table and says whether
// it holds; a new one is a file in `support/games` and a line here.
import { floodedConsole } from './support/games/flooded-console.ts'
import { heldWorld } from './support/games/held-world.ts'
import { idleGames } from './support/games/idle-games.ts'
import { startedGame } from './support/games/started-game.ts'

const PARTS: Readonly<Record<string, () => Promise<boolean>>> = {
  idle: idleGames,
  flood: floodedConsole,
  start: startedGame,
  hold: heldWorld,
}

/** `GAMEKEEPER_BENCH_GAMES=idle` measures that part alone. */
export async function run(): Promise<boolean> {
  const wanted = process.env.GAMEKEEPER_BENCH_GAMES?.split(',') ?? Object.keys(PARTS)
  const held: boolean[] = []
  for (const name of wanted) {
    const part = PARTS[name]
    if (!part) throw new Error(`no part is called ${name}; there are ${Object.keys(PARTS).join(', ')}`)
    console.log(`\n${name}`)
    held.push(await part())
  }
  return held.every(Boolean)
}
