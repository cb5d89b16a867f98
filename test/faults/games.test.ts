import { it } from 'node:test'
import { needs } from '../support/needs.ts'
import { killGames } from './games.ts'

it(
  'no game dies and no line is lost when the service is killed twice while games run',
  needs('bubblewrap'),
  async (t) => {
    await killGames(2, (line) => t.diagnostic(line))
  },
)
