import { needs } from '../../../../test/support/needs.ts'
import { openGames } from '../games.testing.ts'
import { runtimeContract } from '../runtime.contract.ts'

runtimeContract('process', needs('bubblewrap'), {
  kind: 'process',
  isolation: 'bubblewrap',
  open: openGames,
  ownNames: [],
})
