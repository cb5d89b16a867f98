import { type QueryClient, queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { isApiError, type NewSession, type Scope, type SignedIn } from '../../../../src/sdk/index.ts'
import { client } from '../client.ts'
import { SERVERS } from '../servers.ts'
import { dropArrival } from './arrival.ts'
import { keepSessionProof, sessionProof } from './session-proof.ts'

export const SESSION_KEY = ['session'] as const
/** Its refusal says nothing of the session that there may be. */
export const IS_SIGN_IN = { isSignIn: true }

/** Null: nobody is signed in. */
const SESSION = queryOptions({
  queryKey: SESSION_KEY,
  queryFn: async ({ signal }): Promise<SignedIn | null> => {
    const sent = sessionProof()
    if (sent === null) return null
    try {
      return await client.session.read({ signal })
    } catch (error) {
      if (!isApiError(error, 'unauthenticated')) throw error
      // Another tab may have signed in since: that session is not the one that was refused.
      if (sessionProof() === sent) keepSessionProof(null)
      return null
    }
  },
  staleTime: 60_000,
})

export const useSession = () => useQuery(SESSION)

/** What every page begins with, before there is a page. Whatever fails is asked for again by the page, which says so. */
export async function askAhead(queries: QueryClient): Promise<void> {
  await queries.prefetchQuery(SESSION)
  if (queries.getQueryData(SESSION.queryKey)) await queries.prefetchQuery(SERVERS)
}

/** With a token, a link that signs in once, or an invitation. What the last one who was signed in here saw is forgotten. */
export function useSignIn() {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (credential: NewSession) => client.session.create(credential),
    meta: IS_SIGN_IN,
    onSuccess: ({ proof, ...session }) => {
      keepSessionProof(proof)
      queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] })
      queries.setQueryData(SESSION_KEY, session)
    },
  })
}

export function useSignOut() {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: () => client.session.end(),
    onSuccess: () => {
      keepSessionProof(null)
      dropArrival()
      queries.setQueryData(SESSION_KEY, null)
      queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] })
    },
  })
}

/** A link that signs in once, as whoever is signed in here. */
export function useCreateLink() {
  return useMutation({ mutationFn: () => client.session.createLink() })
}

/** Whether the one who is signed in may do that. What they may not is not offered. */
export function useMay(): (scope: Scope) => boolean {
  const { data } = useSession()
  return (scope) => data != null && (data.scopes.includes('*') || data.scopes.includes(scope))
}

/** Whether they may do it everywhere: what concerns the instance as a whole needs that. */
export function useReachesAll(): boolean {
  return useSession().data?.servers === '*'
}

/** A server that is made belongs to all of them, so a right to some does not reach it. */
export function useMayCreate(): boolean {
  const may = useMay()
  const reachesAll = useReachesAll()
  return reachesAll && may('servers:write')
}
