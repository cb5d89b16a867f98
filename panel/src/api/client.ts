// The one client of the service. Its session is a cookie that no script can read and a proof, so there is no token here.
import { createClient } from '../../../src/sdk/index.ts'
import { sessionProof } from './access/session-proof.ts'

export const client = createClient({
  baseUrl: location.origin,
  client: 'panel',
  sessionProof,
  retries: 2,
  timeoutMs: 20_000,
})
