import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { isApiError, type OwnToken, type Scope } from '../../../src/sdk/index.ts'
import { client } from './client.ts'
import { markSession, mayHaveSession } from './session-marker.ts'

export const SESSION_KEY = ['session'] as const

/** How somebody arrives: with a token, a link that the service printed, or an invitation. */
export type Credential = { token: string } | { link: string } | { invitation: string }

const SESSION = {
  path: '/session',
  tag: 'Sessions',
  scope: null,
  bound: { kind: 'rows' } as never,
  errors: [],
  answers: { 204: { description: 'Done' } },
} as const
const openSession = { ...SESSION, id: 'openSession', method: 'POST', summary: 'Sign in', body: {} as never } as const
const closeSession = { ...SESSION, id: 'closeSession', method: 'DELETE', summary: 'Sign out' } as const

/** Null: nobody is signed in. */
export function useSession() {
  return useQuery({
    queryKey: SESSION_KEY,
    queryFn: async ({ signal }): Promise<OwnToken | null> => {
      if (!mayHaveSession()) return null
      try {
        return await client.tokens.own({ signal })
      } catch (error) {
        if (!isApiError(error, 'unauthenticated')) throw error
        markSession(false)
        return null
      }
    },
    staleTime: 60_000,
  })
}

export function useSignIn() {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (credential: Credential) => client.call(openSession, { body: credential as never }),
    onSuccess: () => {
      markSession(true)
      return queries.invalidateQueries({ queryKey: SESSION_KEY })
    },
  })
}

export function useSignOut() {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: () => client.call(closeSession, {}),
    onSuccess: () => {
      markSession(false)
      queries.setQueryData(SESSION_KEY, null)
      queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] })
    },
  })
}

/** Whether the one who is signed in may do that. What they may not is not offered. */
export function useMay(): (scope: Scope) => boolean {
  const { data } = useSession()
  return (scope) => data != null && (data.scopes.includes('*') || data.scopes.includes(scope))
}
