import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query'
import { isApiError } from '../../../src/sdk/index.ts'
import { dropArrival } from './access/arrival.ts'
import { IS_SIGN_IN, SESSION_KEY } from './access/session.ts'
import { followSession } from './access/who.ts'

/** The client of the service has repeated what is worth repeating already; a poll comes again by itself. */
export function createQueryClient(): QueryClient {
  const onError = (error: Error) => {
    // Revoked, or expired: whatever page is open, it becomes the one to sign in on.
    if (!isApiError(error, 'unauthenticated')) return
    dropArrival()
    queries.setQueryData(SESSION_KEY, null)
  }
  const queries = new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({
      onError: (error, _variables, _result, { meta }) => {
        if (meta !== IS_SIGN_IN) onError(error)
      },
    }),
    defaultOptions: {
      queries: { retry: false, staleTime: 1000, refetchOnWindowFocus: true, networkMode: 'always' },
      mutations: { retry: false, networkMode: 'always' },
    },
  })
  followSession(queries)
  return queries
}
