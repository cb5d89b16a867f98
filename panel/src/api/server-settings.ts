import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { Job, ServerChange } from '../../../src/sdk/index.ts'
import { client } from './client.ts'
import { keepServer, refreshServer, removalOf } from './servers.ts'

export function useChangeServer(serverId: string) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (change: ServerChange) => client.servers.change(serverId, change),
    onSuccess: (server) => keepServer(queries, server),
  })
}

/** Resolves once it is installed; `job` says how far that is. */
export function useInstall(serverId: string) {
  const [job, setJob] = useState<Job | null>(null)
  const install = useMutation({
    mutationFn: async (wipe: boolean) => {
      const started = await client.servers.install(serverId, { wipe })
      setJob(started)
      return client.jobs.wait(serverId, started.id, { onProgress: setJob })
    },
    onSettled: () => setJob(null),
  })
  return { install, job }
}

export function useDeletionPlan(serverId: string, isWanted: boolean) {
  return useQuery({
    queryKey: ['deletion', serverId],
    queryFn: ({ signal }) => client.servers.planDeletion(serverId, { signal }),
    enabled: isWanted,
    staleTime: 0,
  })
}

export function useDeletion(serverId: string) {
  const queries = useQueryClient()
  const onSettled = () => refreshServer(queries, serverId)
  return {
    remove: useMutation({
      mutationKey: removalOf(serverId),
      mutationFn: ({ name, purge }: { name: string; purge: boolean }) =>
        client.servers.deleteAndWait(serverId, name, { purge }),
      onSettled,
    }),
    bringBack: useMutation({ mutationFn: () => client.servers.undeleteAndWait(serverId), onSettled }),
  }
}
