import { it } from 'node:test'
import { needs } from '../support/needs.ts'
import { killGames } from './games.ts'

it('no game dies and no line is lost when the service is killed while games run', needs('bubblewrap'), async (t) => {
  await killGames(1, (line) => t.diagnostic(line), [], 2)
})
