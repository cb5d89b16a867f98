// Where somebody is signed in. Null as a token stands for one's own, which needs no right to look at others'.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { client } from '../client.ts'

const POLL_MS = 2000
const keyOf = (tokenId: string | null) => ['sessions', tokenId] as const

export function useSessions(tokenId: string | null) {
  return useQuery({
    queryKey: keyOf(tokenId),
    queryFn: ({ signal }) =>
      Array.fromAsync(
        tokenId === null
          ? client.sessions.all({ limit: 100 }, { signal })
          : client.sessions.allOf(tokenId, { limit: 100 }, { signal }),
      ),
    refetchInterval: POLL_MS,
  })
}

export function useSessionActions(tokenId: string | null) {
  const queries = useQueryClient()
  const onSettled = () => queries.invalidateQueries({ queryKey: keyOf(tokenId) })
  return {
    end: useMutation({
      mutationFn: (sessionId: string) =>
        tokenId === null ? client.sessions.end(sessionId) : client.sessions.endOf(tokenId, sessionId),
      onSettled,
    }),
    /** All but the one that is looked from. */
    endOthers: useMutation({
      mutationFn: () => (tokenId === null ? client.sessions.endOthers() : client.sessions.endAllOf(tokenId)),
      onSettled,
    }),
  }
}
