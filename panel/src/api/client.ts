// The one client of the service. Its session is a cookie that no script can read, so there is no token here.
import { createClient } from '../../../src/sdk/index.ts'

export const client = createClient({ baseUrl: location.origin, client: 'panel', retries: 2, timeoutMs: 20_000 })
