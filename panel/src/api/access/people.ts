// Who has access: those with a token of their own, and those who were invited and have not come yet.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { NewInvitation, NewToken } from '../../../../src/sdk/index.ts'
import { client } from '../client.ts'

const TOKENS = ['tokens'] as const
const INVITATIONS = ['invitations'] as const
const POLL_MS = 2000

export function useTokens() {
  return useQuery({
    queryKey: TOKENS,
    queryFn: ({ signal }) => Array.fromAsync(client.tokens.all({ limit: 100 }, { signal })),
    refetchInterval: POLL_MS,
  })
}

export function useInvitations() {
  return useQuery({
    queryKey: INVITATIONS,
    queryFn: ({ signal }) => Array.fromAsync(client.invitations.all({ limit: 100 }, { signal })),
    refetchInterval: POLL_MS,
  })
}

export function useAccessActions() {
  const queries = useQueryClient()
  const refreshTokens = () => queries.invalidateQueries({ queryKey: TOKENS })
  const refreshInvitations = () => queries.invalidateQueries({ queryKey: INVITATIONS })
  return {
    invite: useMutation({
      mutationFn: (invitation: NewInvitation) => client.invitations.create(invitation),
      onSettled: refreshInvitations,
    }),
    takeBack: useMutation({
      mutationFn: (invitationId: string) => client.invitations.revoke(invitationId),
      onSettled: refreshInvitations,
    }),
    createToken: useMutation({
      mutationFn: (token: NewToken) => client.tokens.create(token),
      onSettled: refreshTokens,
    }),
    revoke: useMutation({
      mutationFn: (tokenId: string) => client.tokens.revoke(tokenId),
      onSettled: refreshTokens,
    }),
  }
}
