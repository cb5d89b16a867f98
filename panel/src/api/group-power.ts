import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { PowerAction, Server } from '../../../src/sdk/index.ts'
import { client } from './client.ts'

export interface GroupPowerFailure {
  server: Server
  error: unknown
}

/** Each by itself: one that fails keeps no other from what was asked. */
export function useGroupPower() {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: async ({ servers, action }: { servers: readonly Server[]; action: PowerAction }) => {
      const failures: GroupPowerFailure[] = []
      await Promise.all(
        servers.map((server) =>
          client.power.act(server.id, action).catch((error: unknown) => failures.push({ server, error })),
        ),
      )
      return failures
    },
    onSettled: async () => {
      await queries.invalidateQueries({ queryKey: ['servers'] })
      await queries.invalidateQueries({ queryKey: ['server'] })
    },
  })
}
